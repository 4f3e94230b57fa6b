/* multicast._core: connects Python and the library in both directions.
 *
 * Each registration is one delegate, which consists of the C function `call` and, as its context,
 * the Python object that contains the callable. The library is responsible for order, events,
 * removals and waits, and detects waits that would cause a deadlock.
 *
 * The interpreter's lock. If C code cannot use a multicast, invoking it does not release the lock,
 * so its delegates run with the lock held. If C code has the handle or the multicast replays, an
 * invocation may have to wait for another thread. Therefore it first releases the lock, which the
 * other thread may need. The library does not know about this lock, so it could not detect the
 * deadlock. A removal first tries not to wait, and releases the lock only if it has to wait.
 *
 * Payloads. A plain invocation passes the address of its frame, which is on the stack. If a call
 * may outlive the invocation, or if C code may read the payload, the arguments are in an object
 * instead. C code receives the address of the object's `wire`, which identifies the object.
 *
 * Ownership. The library holds one reference to each registration and each payload. Until the
 * library releases them, their multicast keeps them in a list and reports them to the garbage
 * collector. Destroying a multicast releases all of them, so a multicast that refers to itself
 * through a delegate is collected. */

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "multicast.h"

#define SLICE_NS 100000000u /* a waiting thread checks for signals at this interval */

enum { UNKNOWN = -1 };          /* held.limit before the first call */
enum { FOREIGN, OWNED, NAMED };  /* owned by C code, its Python object, a Python broadcaster */

typedef struct node {
  struct node *previous, *next;
} node;

typedef struct wire {
  uint64_t mark, number;
} wire;

/* A multicast. */
typedef struct core {
  PyObject_HEAD
  multicast handle;
  node held;
  size_t queued; /* registrations with a queue */
  Py_ssize_t pauses;
  PyObject *name; /* bytes, for a multicast of a broadcaster */
  multicast_broadcaster broadcaster;
  bool replays, defers, is_finished;
  char ownership;
  char is_shared; /* C code may use it */
} core;

/* An object to which the library holds a reference: a registration or a payload (with `args`). */
typedef struct held {
  PyObject_HEAD
  node link;
  core *owner; /* NULL if C code owns the multicast, or if its object was freed */
  multicast target_id;
  multicast_token token;
  PyObject *function; /* NULL if the object of `target` itself is called */
  PyObject *target;   /* NULL, or a weak reference to the first argument of `function` */
  PyObject *sender;   /* NULL, a weak reference, or an object that is compared with the sender */
  PyObject *lifetime, *on_end;
  PyObject *names; /* the keywords that it accepts; NULL for all */
  PyObject *kwargs;
  PyObject *queue, *args; /* not cleared by the collector, because release() needs them */
  wire wire;
  int limit; /* the maximum number of arguments */
  bool sender_is_weak;
  bool is_once; /* this file makes sure that it is called once */
  bool is_over; /* it was called once */
} held;

/* The number of fields from `function` to `args`, and how many of them the collector clears. */
enum { REFERENCE_COUNT = 9, CLEARED_COUNT = 7 };
_Static_assert(offsetof(held, args) - offsetof(held, function) ==
                   (REFERENCE_COUNT - 1) * sizeof(PyObject *), "these follow each other");
static PyObject **references(held *self) { return &self->function; }

/* An invocation, a run of a queue, or a call from C, on the stack of its thread. */
typedef struct frame {
  struct frame *self; /* distinguishes the frame from a copy of its bytes by C code */
  struct frame *outer;
  multicast target;
  PyObject *args, *kwargs, *sender, *results, *errors, *interruption;
  held *token, *payload; /* the current registration and its payload */
  void *woken; /* during a run of a queue: the context of its postponed `wake` */
  int64_t skipped;
  uint32_t event;
  unsigned char keeps_coroutines, is_run;
} frame;

static _Thread_local frame *current;

/* The greenlet of `current`. Not in the frame, because a greenlet that is not running has no stack:
 * its frames have been moved away. */
static _Thread_local PyObject *inside;

static node orphans = {&orphans, &orphans}, deferred = {&deferred, &deferred};
static atomic_int is_over, is_forking, is_anything_shared;

static PyTypeObject *core_type, *held_type, *token_type, *coroutine_type;
static PyObject *fail, *group, *accepts, *known, *on_coroutine, *on_wake;
static PyObject *greenlet_name, *get_greenlet;

/* Maps the wires of live payloads to their addresses. Stale or forged wires are not found. */
static PyObject *payloads;
static uint64_t mark, last_number;

/* ---- Lists, under the interpreter's lock ----------------------------------------------------- */

static void insert(node *list, node *one) {
  one->previous = list->previous;
  one->next = list;
  list->previous->next = one;
  list->previous = one;
}

static void take_out(node *one) {
  one->previous->next = one->next;
  one->next->previous = one->previous;
  one->previous = one->next = one;
}

static held *held_of(node *link) { return (held *)((char *)link - offsetof(held, link)); }

/* Retains an object for the library. */
static void hold(core *self, held *object) {
  object->owner = self->is_finished || self->ownership == FOREIGN ? NULL : self;
  object->target_id = self->handle;
  insert(object->owner != NULL ? &self->held : &orphans, &object->link);
  if (object->owner != NULL && object->queue != NULL) self->queued++;
  Py_INCREF(object);
}

static void own(PyObject **field, PyObject *value) {
  if (value == NULL || value == Py_None) return;
  Py_INCREF(value);
  *field = value;
}

static held *new_held(PyTypeObject *type) {
  held *made = (held *)PyType_GenericAlloc(type, 0);
  if (made == NULL) return NULL;
  made->link.previous = made->link.next = &made->link;
  made->limit = UNKNOWN;
  return made;
}

static void clear_references(held *self, int count) {
  for (int i = 0; i < count; i++) Py_CLEAR(references(self)[i]);
}

static held *find_payload(const void *address, size_t size) {
  if (address == NULL || size != sizeof(wire)) return NULL;
  PyObject *key = PyBytes_FromStringAndSize(address, sizeof(wire));
  PyObject *found = key == NULL ? NULL : PyDict_GetItem(payloads, key);
  Py_XDECREF(key);
  return found == NULL ? NULL : PyLong_AsVoidPtr(found);
}

static void forget_payload(held *payload) {
  PyObject *key = PyBytes_FromStringAndSize((char *)&payload->wire, sizeof(wire));
  if (key == NULL || PyDict_DelItem(payloads, key) < 0) PyErr_Clear();
  Py_XDECREF(key);
}

/* Whether a removal may call C code, as the `listeners_changed` of a multicast that C has created.
 * The removal then releases the interpreter's lock, because the C code may wait for a thread that
 * needs it. */
#define MAY_CALL_C atomic_load(&is_anything_shared)

static void end_registration(multicast_token token) {
  PyThreadState *state = MAY_CALL_C ? PyEval_SaveThread() : NULL;
  multicast_token_remove_within(token, 0);
  if (state != NULL) PyEval_RestoreThread(state);
}

/* After the exit handlers, the interpreter may be shutting down, so C threads must not call it. */
static int is_too_late(void) {
  return atomic_load(&is_over) && PyGILState_GetThisThreadState() == NULL;
}

/* ---- Exceptions ------------------------------------------------------------------------------ */

static void note(frame *here, PyObject *error) {
  /* After a RecursionError or MemoryError, further calls would fail for the same reason. */
  int ends = !PyErr_GivenExceptionMatches(error, PyExc_Exception) ||
             PyErr_GivenExceptionMatches(error, PyExc_RecursionError) ||
             PyErr_GivenExceptionMatches(error, PyExc_MemoryError);
  if (!ends && here->errors == NULL) ends = (here->errors = PyList_New(0)) == NULL;
  if (!ends) ends = PyList_Append(here->errors, error) < 0;
  PyErr_Clear();
  if (ends && here->interruption == NULL) own(&here->interruption, error);
}

static void note_error(frame *here) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != NULL) PyException_SetTraceback(value, trace);
  note(here, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

static int raise_error(void *error) {
  PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), error);
  Py_DECREF((PyObject *)error);
  return -1;
}

/* Makes the main thread raise an exception soon, if a signal handler may have raised it. */
static int raise_soon(PyObject *error) {
  int is_main = syscall(SYS_gettid) == getpid();
  if (!PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt) &&
      !(is_main && PyErr_GivenExceptionMatches(error, PyExc_SystemExit)))
    return 0;
  Py_INCREF(error);
  if (Py_AddPendingCall(raise_error, error) == 0) return 1;
  Py_DECREF(error);
  return 0;
}

/* Reports an exception thrown by Python code that the library has called. The exception of a signal
 * handler is never lost: an invocation on this thread raises it, or the main thread does so. */
static void report(frame *outer, PyObject *error) {
  if (outer != NULL) {
    note(outer, error);
  } else if (!raise_soon(error)) {
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    PyErr_WriteUnraisable(NULL);
  }
}

static void report_all(frame *here, frame *outer) {
  if (here->interruption != NULL) report(outer, here->interruption);
  for (Py_ssize_t i = 0; here->errors != NULL && i < PyList_Size(here->errors); i++)
    report(outer, PyList_GetItem(here->errors, i));
  Py_CLEAR(here->interruption);
  Py_CLEAR(here->errors);
}

/* Calls a Python function that is not a delegate, and calls it again if an interrupt stops it. */
static void call_back(PyObject *function, PyObject *first, PyObject *second) {
  PyObject *type, *value, *trace, *result = NULL;
  PyErr_Fetch(&type, &value, &trace);
  Py_INCREF(function);
  Py_XINCREF(first);
  for (int tries = 0; tries < 2 && result == NULL; tries++) {
    frame here = {0};
    result = PyObject_CallFunctionObjArgs(function, first, second, NULL);
    if (result == NULL) note_error(&here);
    if (result == NULL &&
        (here.interruption == NULL ||
         !PyErr_GivenExceptionMatches(here.interruption, PyExc_KeyboardInterrupt)))
      tries = 2;
    report_all(&here, here.interruption != NULL ? current : NULL);
  }
  Py_XDECREF(result);
  Py_XDECREF(first);
  Py_DECREF(function);
  PyErr_Restore(type, value, trace);
}

/* ---- Calling a delegate, under the interpreter's lock ---------------------------------------- */

/* Finds out how many arguments and which keywords a callable accepts, when it is first called. */
static int learn(held *token, PyObject *function) {
  int is_bound = token->function != NULL && token->target != NULL;
  PyObject *names, *found =
      PyObject_CallFunctionObjArgs(accepts, function, is_bound ? Py_True : Py_False, NULL);
  if (found == NULL || !PyArg_ParseTuple(found, "iO", &token->limit, &names)) return 0;
  if (token->names == NULL) own(&token->names, names);
  Py_DECREF(found);
  return 1;
}

/* Calls function([strong,] arguments ...) with as many arguments as it accepts. */
static PyObject *call_with(held *token, PyObject *function, PyObject *strong, frame *here) {
  PyObject *args, *kwargs = NULL, *result = NULL;
  Py_ssize_t count = PyTuple_Size(here->args);
  if (token->limit == UNKNOWN && !learn(token, function)) return NULL;
  if (token->limit < count) count = token->limit;
  if (here->kwargs == NULL && strong == NULL && count == PyTuple_Size(here->args))
    return PyObject_Call(function, here->args, NULL);
  if (here->kwargs == NULL && strong != NULL && count <= 1)
    return PyObject_CallFunctionObjArgs(function, strong,
                                        count > 0 ? PyTuple_GetItem(here->args, 0) : NULL, NULL);
  args = strong == NULL ? PyTuple_GetSlice(here->args, 0, count) : PyTuple_New(count + 1);
  for (Py_ssize_t i = 0; strong != NULL && args != NULL && i <= count; i++) {
    PyObject *one = i == 0 ? strong : PyTuple_GetItem(here->args, i - 1);
    Py_INCREF(one);
    PyTuple_SetItem(args, i, one);
  }
  if (here->kwargs != NULL && token->names != NULL)
    kwargs = PyObject_CallFunctionObjArgs(known, here->kwargs, token->names, NULL);
  else
    own(&kwargs, here->kwargs);
  if (args != NULL && (kwargs != NULL || here->kwargs == NULL))
    result = PyObject_Call(function, args, kwargs);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

/* Whether the delegate accepts invocations from this sender. */
static int wants_sender(held *token, frame *here) {
  if (token->sender == NULL) return 1;
  if (here->sender == NULL) return 0;
  if (token->sender_is_weak) return PyWeakref_GetObject(token->sender) == here->sender;
  int is_equal = PyObject_RichCompareBool(token->sender, here->sender, Py_EQ);
  if (is_equal < 0) note_error(here);
  return is_equal > 0;
}

static void call_in(held *token, frame *here) {
  /* Compare the sender before borrowing references, because the comparison may run Python code. */
  int is_wanted = here->interruption == NULL && wants_sender(token, here);
  PyObject *strong = token->target == NULL ? NULL : PyWeakref_GetObject(token->target);
  PyObject *function = token->function, *result;
  if (function == NULL) {
    function = strong;
    strong = NULL;
  }
  if (!is_wanted || token->is_over || function == NULL || function == Py_None ||
      strong == Py_None) {
    here->skipped++;
    return;
  }
  Py_INCREF(function);
  Py_XINCREF(strong);
  token->is_over = token->is_once;
  if (token->is_once) end_registration(multicast_token_current());
  here->token = token;
  result = call_with(token, function, strong, here);
  if (result != NULL && Py_TYPE(result) == coroutine_type && !here->keeps_coroutines) {
    PyObject *done = PyObject_CallFunctionObjArgs(
        on_coroutine, token->queue != NULL ? token->queue : Py_None, result, NULL);
    Py_DECREF(result);
    result = done;
  }
  if (result == NULL || (here->results != NULL && PyList_Append(here->results, result) < 0))
    note_error(here);
  Py_XDECREF(result);
  Py_DECREF(function);
  Py_XDECREF(strong);
  here->token = NULL;
}

/* Begins an invocation, a run of a queue, or a call from C. Because greenlets switch stacks without
 * the library's knowledge, only one greenlet per thread may be inside a delegate. */
static int enter(frame *here) {
  PyObject *module;
  here->self = here;
  here->outer = current;
  if (get_greenlet == NULL) {
    module = PyDict_GetItem(PyImport_GetModuleDict(), greenlet_name);
    if (module != NULL) get_greenlet = PyObject_GetAttrString(module, "getcurrent");
    PyErr_Clear(); /* the module is being imported */
  }
  if (get_greenlet != NULL) {
    PyObject *greenlet = PyObject_CallFunctionObjArgs(get_greenlet, NULL);
    if (greenlet == NULL) return 0;
    Py_DECREF(greenlet); /* only its address is compared */
    if (current == NULL || inside == NULL) inside = greenlet;
    if (inside != greenlet) {
      PyErr_SetString(PyExc_RuntimeError, "another greenlet of this thread is inside a delegate");
      return 0;
    }
  }
  current = here;
  return 1;
}

/* Makes a call that comes from a queue, a replay, a deferred invocation, or C code. */
static void call_foreign(held *token, uint32_t event, const void *address, size_t size) {
  if (is_too_late()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  frame *outer = current;
  frame here = {.target = token->target_id, .event = event};
  if (!enter(&here)) {
    note_error(&here);
    report_all(&here, NULL);
    PyGILState_Release(state);
    return;
  }
  here.payload = find_payload(address, size);
  Py_XINCREF(here.payload);
  if (here.payload != NULL) {
    own(&here.args, here.payload->args);
    here.kwargs = here.payload->kwargs;
    here.sender = here.payload->sender;
  } else {
    here.args = Py_BuildValue("(y#)", address, (Py_ssize_t)size); /* None for NULL */
  }
  if (outer != NULL) {
    if (outer->interruption != NULL) own(&here.interruption, outer->interruption);
    if (outer->target.id == here.target.id && token->queue == NULL) {
      here.results = outer->results;
      here.keeps_coroutines = outer->keeps_coroutines;
    }
  }
  here.args == NULL ? note_error(&here) : call_in(token, &here);
  current = outer;
  if (outer != NULL) outer->skipped += here.skipped;
  report_all(&here, outer);
  Py_XDECREF(here.args);
  Py_XDECREF(here.payload);
  PyGILState_Release(state);
}

/* The C function of every delegate. */
static void call(void *context, uint32_t event, const void *payload, size_t size) {
  const frame *here = payload;
  if (size == sizeof *here && here->self == here)
    call_in(context, (frame *)payload);
  else
    call_foreign(context, event, payload, size);
}

/* ---- Releasing ------------------------------------------------------------------------------- */

/* Frees objects that the library released, but not inside fork(), where no Python code may run. */
static void let_deferred_go(void) {
  while (deferred.next != &deferred && !atomic_load(&is_forking)) {
    held *object = held_of(deferred.next);
    PyObject *on_end = object->on_end;
    take_out(&object->link);
    object->on_end = NULL;
    if (object->args == NULL)
      clear_references(object, REFERENCE_COUNT);
    else
      forget_payload(object);
    if (on_end != NULL && on_end != Py_None) call_back(on_end, NULL, NULL);
    Py_XDECREF(on_end);
    Py_DECREF(object);
  }
}

/* Releases the library's reference. */
static void release(held *object) {
  if (is_too_late()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  take_out(&object->link);
  if (object->owner != NULL && object->queue != NULL) object->owner->queued--;
  object->owner = NULL;
  insert(&deferred, &object->link);
  let_deferred_go();
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

static void release_context(void *context) { release(context); }

static void release_payload(const void *payload, size_t size) {
  release((held *)((char *)payload - offsetof(held, wire)));
}

static void fork_begins(void) { atomic_store(&is_forking, 1); }
static void fork_is_over(void) { atomic_store(&is_forking, 0); }

/* In the child of a fork, where `new_mark` is not None, the library neither makes nor releases
 * queued calls, because they belong to the parent. Therefore this function releases their payloads,
 * except those still needed by calls on this thread, deferred invocations or replays. */
static PyObject *after_fork(PyObject *module, PyObject *new_mark) {
  PyObject *key, *address;
  Py_ssize_t at = 0;
  fork_is_over();
  if (new_mark != Py_None) memcpy(&mark, PyBytes_AsString(new_mark), sizeof mark);
  while (new_mark != Py_None && PyDict_Next(payloads, &at, &key, &address)) {
    held *payload = PyLong_AsVoidPtr(address);
    const frame *user = current;
    while (user != NULL && user->payload != payload) user = user->outer;
    if (user != NULL || payload->owner == NULL) continue;
    if (payload->owner->replays || payload->owner->defers) continue;
    take_out(&payload->link);
    insert(&deferred, &payload->link);
  }
  let_deferred_go();
  Py_RETURN_NONE;
}

/* ---- Invoking -------------------------------------------------------------------------------- */

static PyObject *failed(int64_t status) {
  PyObject *result = PyErr_Occurred() ? NULL : PyObject_CallFunction(fail, "L", (long long)status);
  Py_XDECREF(result);
  return NULL;
}

/* Ends an invocation or run that enter() began, and raises the delegates' exceptions. */
static int leave(frame *here) {
  PyObject *error = here->interruption;
  current = here->outer;
  if (error == NULL && here->errors == NULL) return 1;
  if (error == NULL) error = PyObject_CallFunctionObjArgs(group, here->errors, NULL);
  if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
  Py_CLEAR(here->errors);
  return 0;
}

static int make_payload(core *self, frame *here) {
  held *made = new_held(held_type);
  if (made == NULL) return 0;
  made->wire = (wire){mark, ++last_number};
  own(&made->args, here->args);
  own(&made->kwargs, here->kwargs);
  own(&made->sender, here->sender);
  PyObject *key = PyBytes_FromStringAndSize((char *)&made->wire, sizeof(wire));
  PyObject *address = PyLong_FromVoidPtr(made);
  int is_known = key != NULL && address != NULL && PyDict_SetItem(payloads, key, address) == 0;
  Py_XDECREF(key);
  Py_XDECREF(address);
  if (is_known)
    hold(self, here->payload = made);
  else
    Py_DECREF(made);
  return is_known;
}

/* Makes an invocation whose payload may outlive it or be read by C code. Passes bytes and None
 * unchanged. */
static int64_t invoke_held(core *self, frame *here) {
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  PyObject *only = NULL;
  if (self->is_shared && here->kwargs == NULL && here->sender == NULL)
    only = PyTuple_Size(here->args) == 1 ? PyTuple_GetItem(here->args, 0) : NULL;
  how.event = here->event;
  if (only != NULL && PyBytes_CheckExact(only)) {
    how.size = (size_t)PyBytes_Size(only);
    how.payload = how.size > 0 ? PyBytes_AsString(only) : "";
  } else if (only != Py_None) {
    if (!make_payload(self, here)) return MULTICAST_ERROR_OUT_OF_MEMORY;
    how.payload = &here->payload->wire;
    how.size = sizeof here->payload->wire;
    how.release = release_payload;
  }
  const char *name = self->name != NULL && self->is_shared ? PyBytes_AsString(self->name) : NULL;
  PyThreadState *state = self->is_shared || self->replays ? PyEval_SaveThread() : NULL;
  int64_t count = name != NULL
                      ? multicast_broadcaster_notify_with(self->broadcaster, name, &how, NULL)
                      : multicast_invoke_with(self->handle, &how, NULL);
  if (state != NULL) PyEval_RestoreThread(state);
  Py_XDECREF(here->payload);
  return count;
}

static PyObject *invoke_in(core *self, frame *here) {
  if (self->pauses > 0) return PyLong_FromLong(0);
  here->target = self->handle;
  if (here->kwargs != NULL && PyDict_Size(here->kwargs) == 0) here->kwargs = NULL;
  if (!enter(here)) return NULL;
  int64_t count = self->is_shared || self->queued > 0 || self->replays || self->defers
                      ? invoke_held(self, here)
                      : multicast_invoke(self->handle, here->event, here, sizeof *here);
  if (!leave(here)) return NULL;
  if (count == MULTICAST_ERROR_LIMIT && !self->defers)
    PyErr_SetString(PyExc_RecursionError, "256 invocations are nested");
  return count < 0 ? failed(count) : PyLong_FromLongLong(count - here->skipped);
}

static PyObject *core_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  frame here = {.args = args, .kwargs = kwargs};
  return invoke_in((core *)self, &here);
}

static PyObject *core_invoke(core *self, PyObject *args, PyObject *kwargs) {
  if (kwargs == NULL || PyDict_Size(kwargs) == 0) return core_call((PyObject *)self, args, NULL);
  PyObject *with_options = PyObject_GetAttrString((PyObject *)self, "_invoke_with");
  PyObject *count = with_options == NULL ? NULL : PyObject_Call(with_options, args, kwargs);
  Py_XDECREF(with_options);
  return count;
}

/* _run(args, kwargs, event, sender, results, keeps_coroutines) */
static PyObject *core_run(core *self, PyObject *args) {
  long long event;
  frame here = {0};
  if (!PyArg_ParseTuple(args, "OOLOOb", &here.args, &here.kwargs, &event, &here.sender,
                        &here.results, &here.keeps_coroutines))
    return NULL;
  if (event < 0 || event > UINT32_MAX)
    return PyErr_Format(PyExc_ValueError, "an event is from 0 to 2^32 - 1: %lld", event);
  here.event = (uint32_t)event;
  if (here.sender == Py_None) here.sender = NULL;
  if (here.results == Py_None) here.results = NULL;
  return invoke_in(self, &here);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Called when the object of a weak registration has been freed. */
static PyObject *target_is_gone(PyObject *token, PyObject *reference) {
  end_registration(((held *)token)->token);
  Py_RETURN_NONE;
}

static PyMethodDef target_is_gone_method = {"target_is_gone", target_is_gone, METH_O, NULL};

static int refer(held *token, PyObject *object, PyObject **out) {
  PyObject *gone = PyCFunction_NewEx(&target_is_gone_method, (PyObject *)token, NULL);
  *out = gone == NULL ? NULL : PyWeakref_NewRef(object, gone);
  Py_XDECREF(gone);
  return *out != NULL;
}

static held *new_registration(PyObject *function, PyObject *target) {
  held *token = new_held(token_type);
  if (token == NULL) return NULL;
  own(&token->function, function);
  if (target == Py_None || refer(token, target, &token->target)) return token;
  if (PyErr_ExceptionMatches(PyExc_TypeError))
    PyErr_Format(PyExc_TypeError, "an object of type %R cannot be held weakly: give weak=False",
                 Py_TYPE(target));
  Py_DECREF(token);
  return NULL;
}

static PyObject *core_add(core *self, PyObject *args) {
  PyObject *function, *target, *sender, *queue, *lifetime;
  long long priority;
  multicast_add_options how = MULTICAST_ADD_OPTIONS_INIT;
  if (!PyArg_ParseTuple(args, "OOOOKOKLKIz", &function, &target, &sender, &queue, &how.queue.id,
                        &lifetime, &how.lifetime.id, &priority, &how.events, &how.flags,
                        &how.label))
    return NULL;
  if (priority < INT32_MIN || priority > INT32_MAX)
    return PyErr_Format(PyExc_ValueError, "a priority is from -2^31 to 2^31 - 1: %lld", priority);
  if (how.flags & MULTICAST_LATEST && sender != Py_None)
    return PyErr_Format(PyExc_ValueError, "`latest` would drop the calls of the sender for others");
  held *token = new_registration(function, target);
  frame here = {.target = self->handle};
  if (token == NULL || !enter(&here)) {
    Py_XDECREF(token);
    return NULL;
  }
  token->sender_is_weak = sender != Py_None && refer(token, sender, &token->sender);
  if (!token->sender_is_weak) {
    PyErr_Clear(); /* numbers and strings have no weak references, so they are compared */
    own(&token->sender, sender);
  }
  own(&token->queue, queue);
  own(&token->lifetime, lifetime);
  how.priority = (int32_t)priority;
  how.release = release_context;
  /* The library knows nothing about senders, and takes a call that is skipped for the only one. */
  token->is_once = how.flags & MULTICAST_ONCE && (queue == Py_None || token->sender != NULL);
  if (token->is_once) how.flags &= ~MULTICAST_ONCE;
  token->wire.number = ++last_number;
  hold(self, token);
  PyThreadState *state = self->replays || self->is_shared ? PyEval_SaveThread() : NULL;
  multicast_status status =
      multicast_add(self->handle, (multicast_delegate){call, token}, &how, &token->token);
  if (state != NULL) PyEval_RestoreThread(state);
  if (leave(&here) && status == MULTICAST_OK) return (PyObject *)token;
  if (status == MULTICAST_OK) /* a replay has raised an exception, so undo the add */
    end_registration(token->token);
  else
    failed(status);
  Py_DECREF(token);
  return NULL;
}

/* Returns the registrations, even removed ones that are being called, in order of addition. */
static PyObject *core_held(core *self, PyObject *none) {
  PyObject *list = PyList_New(0);
  const node *head = self->ownership == FOREIGN ? &orphans : &self->held;
  for (node *one = head->next; list != NULL && one != head; one = one->next) {
    held *token = held_of(one);
    if (token->token.id != 0 && token->target_id.id == self->handle.id &&
        PyList_Append(list, (PyObject *)token) < 0)
      Py_CLEAR(list);
  }
  return list;
}

static bool append_token(void *context, const multicast_registration *one) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject **list = context, *item = NULL;
  if (one->delegate.function == call)
    own(&item, one->delegate.context);
  else
    item = PyLong_FromUnsignedLongLong(one->token.id);
  if (item == NULL || PyList_Append(*list, item) < 0) Py_CLEAR(*list);
  Py_XDECREF(item);
  PyGILState_Release(state);
  return *list != NULL;
}

/* Returns all registrations in the order of invocation. The registration of a C delegate is
 * represented by its token's number. */
static PyObject *core_tokens(core *self, PyObject *none) {
  PyObject *list = PyList_New(0);
  if (list == NULL) return NULL;
  PyThreadState *state = PyEval_SaveThread();
  int64_t count = multicast_enumerate(self->handle, append_token, &list);
  PyEval_RestoreThread(state);
  if (count >= 0 || count == MULTICAST_ERROR_INVALID_HANDLE) return list;
  Py_XDECREF(list);
  return failed(count);
}

/* ---- A multicast ----------------------------------------------------------------------------- */

/* Called when the first listener has been added or the last one has been removed. */
static void changed(void *context, multicast target, bool has_listeners) {
  held *hook = context;
  if (is_too_late()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *has = has_listeners ? Py_True : Py_False;
  PyObject *strong = hook->target != NULL ? PyWeakref_GetObject(hook->target) : NULL;
  if (strong == NULL)
    call_back(hook->function, has, NULL);
  else if (strong != Py_None)
    call_back(hook->function, strong, has);
  PyGILState_Release(state);
}

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  core *self = (core *)PyType_GenericAlloc(type, 0);
  if (self == NULL) return NULL;
  self->held.previous = self->held.next = &self->held;
  return (PyObject *)self;
}

static PyObject *core_open(core *self, PyObject *args) {
  multicast_create_options how = MULTICAST_CREATE_OPTIONS_INIT;
  PyObject *function, *target;
  long long replay;
  held *hook = NULL;
  if (!PyArg_ParseTuple(args, "zILOO", &how.label, &how.reentry, &replay, &function, &target))
    return NULL;
  if (replay < 0 || replay > UINT32_MAX)
    return PyErr_Format(PyExc_ValueError, "a replay is from 0 to 2^32 - 1: %lld", replay);
  how.replay = (uint32_t)replay;
  if (self->handle.id != 0) return failed(MULTICAST_ERROR_STATE);
  self->ownership = OWNED;
  self->replays = how.replay > 0;
  self->defers = how.reentry >= MULTICAST_REENTRY_DEFER;
  if (function != Py_None) {
    hook = new_registration(function, target);
    if (hook == NULL) return NULL;
    hold(self, hook);
    how.context = hook;
    how.listeners_changed = changed;
    how.release = release_context;
  }
  self->handle = multicast_create_with(&how);
  if (self->handle.id == 0 && hook != NULL) release(hook);
  Py_XDECREF(hook);
  if (self->handle.id == 0) return failed(multicast_create_error());
  Py_RETURN_NONE;
}

/* Called when the object is unreferenced. A multicast owned by C code keeps its registrations. */
static void core_finalize(PyObject *object) {
  core *self = (core *)object;
  if (self->is_finished) return;
  self->is_finished = 1;
  if (self->ownership == OWNED) multicast_destroy_within(self->handle, 0);
  if (self->ownership == NAMED) multicast_remove_all_within(self->handle, 0, NULL);
}

static int core_traverse(PyObject *object, visitproc visit, void *arg) {
  core *self = (core *)object;
  Py_VISIT(Py_TYPE(object));
  for (node *one = self->held.next; one != &self->held; one = one->next) Py_VISIT(held_of(one));
  return 0;
}

static void free_object(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static void core_dealloc(PyObject *object) {
  core *self = (core *)object;
  PyObject_GC_UnTrack(object);
  core_finalize(object);
  while (self->held.next != &self->held) { /* these registrations are being called */
    held *one = held_of(self->held.next);
    take_out(&one->link);
    one->owner = NULL;
    insert(&orphans, &one->link);
  }
  Py_CLEAR(self->name);
  free_object(object);
}

static int held_traverse(PyObject *object, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(object));
  for (int i = 0; i < REFERENCE_COUNT; i++) Py_VISIT(references((held *)object)[i]);
  return 0;
}

static int held_clear(PyObject *object) {
  clear_references((held *)object, CLEARED_COUNT);
  return 0;
}

static void held_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  clear_references((held *)object, REFERENCE_COUNT);
  free_object(object);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* wait(is_queue, handle, nanoseconds) waits until a call is queued, or until an ended object's
 * calls have returned. It handles signals in between by waiting in short slices. */
static PyObject *wait_for(PyObject *module, PyObject *args) {
  unsigned long long handle, left;
  int is_queue;
  if (!PyArg_ParseTuple(args, "pKK", &is_queue, &handle, &left)) return NULL;
  /* First check without releasing the lock, because usually there is nothing to wait for. */
  int64_t status = is_queue ? MULTICAST_ERROR_TIMEOUT : multicast_ended_within(handle, 0);
  while (status == MULTICAST_ERROR_TIMEOUT) {
    uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
    PyThreadState *state = PyEval_SaveThread();
    status = is_queue ? multicast_queue_wait((multicast_queue){handle}, slice)
                      : multicast_ended_within(handle, slice);
    PyEval_RestoreThread(state);
    if (PyErr_CheckSignals() < 0) return NULL;
    if (left == 0) break;
    if (left != MULTICAST_FOREVER) left -= slice;
  }
  /* These statuses mean that no call was queued, or that all calls had already returned. */
  if (status == (is_queue ? MULTICAST_ERROR_TIMEOUT : MULTICAST_ERROR_INVALID_HANDLE)) status = 0;
  return status < 0 ? failed(status) : PyLong_FromLongLong(status);
}

/* ---- Functions of handles -------------------------------------------------------------------- */

/* The arguments of X are a function's name, whether it releases the lock, and an expression for its
 * result, given the handle `id`: a number or a negative status. Functions that end an object remove
 * its registrations without waiting; wait() then waits for their calls. Functions that may call C
 * code release the lock, because the C code may wait for a thread that needs it. */
#define FUNCTIONS(X)                                                                          \
  X(end_token, MAY_CALL_C, multicast_token_remove_within((multicast_token){id}, 0))           \
  X(end_lifetime, MAY_CALL_C, multicast_lifetime_end_within((multicast_lifetime){id}, 0))     \
  X(end_queue, MAY_CALL_C, multicast_queue_destroy_within((multicast_queue){id}, 0))          \
  X(end_multicast, 1, multicast_destroy_within((multicast){id}, 0))                           \
  X(end_broadcaster, 1, multicast_broadcaster_destroy_within((multicast_broadcaster){id}, 0)) \
  X(clear, 1, multicast_remove_all_within((multicast){id}, 0, NULL))                          \
  X(is_valid, 0, multicast_is_valid((multicast){id}))                                         \
  X(count, 0, multicast_count((multicast){id}))                                               \
  X(has_listeners, 0, multicast_has_listeners(multicast_listener_flag((multicast){id})))      \
  X(token_is_valid, 0, multicast_token_is_valid((multicast_token){id}))                       \
  X(token_pause, 0, multicast_token_pause((multicast_token){id}))                             \
  X(token_resume, 0, multicast_token_resume((multicast_token){id}))                           \
  X(lifetime_create, 0, (int64_t)multicast_lifetime_create().id)                              \
  X(lifetime_count, 0, multicast_lifetime_count((multicast_lifetime){id}))                    \
  X(queue_clear, 0, multicast_queue_clear((multicast_queue){id}))                             \
  X(queue_fd, 0, multicast_queue_fd((multicast_queue){id}))                                   \
  X(broadcaster_create, 0, (int64_t)multicast_broadcaster_create(NULL).id)                    \
  X(broadcaster_default, 0, (int64_t)multicast_broadcaster_default().id)                      \
  X(create_error, 0, multicast_create_error())                                                \
  X(version, 0, multicast_version())                                                          \
  X(share, 0, (atomic_store(&is_anything_shared, 1), 0))                                      \
  X(finish, 0, (atomic_store(&is_over, 1), 0))

#define DEFINE(name, gives_lock_up, result)                                                   \
  static PyObject *name(PyObject *module, PyObject *handle) {                                 \
    uint64_t id = PyLong_AsUnsignedLongLongMask(handle);                                      \
    PyThreadState *state = gives_lock_up ? PyEval_SaveThread() : NULL;                        \
    int64_t number = result;                                                                  \
    (void)id;                                                                                 \
    if (state != NULL) PyEval_RestoreThread(state);                                           \
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(number);                             \
  }
FUNCTIONS(DEFINE)

/* Returns (priority, is_paused, label), or (None, False, None) if the registration has ended. */
static PyObject *token_properties(PyObject *module, PyObject *handle) {
  multicast_registration one = MULTICAST_REGISTRATION_INIT;
  if (multicast_token_get_registration((multicast_token){PyLong_AsUnsignedLongLongMask(handle)},
                                       &one) < 0)
    return Py_BuildValue("(OOO)", Py_None, Py_False, Py_None);
  PyObject *is_paused = one.is_paused ? Py_True : Py_False;
  if (one.label == NULL) return Py_BuildValue("(iOO)", (int)one.priority, is_paused, Py_None);
  /* The library may have cut the label inside a character. */
  PyObject *label = PyUnicode_DecodeUTF8(one.label, (Py_ssize_t)strlen(one.label), "ignore");
  return Py_BuildValue("(iON)", (int)one.priority, is_paused, label);
}

static PyObject *broadcaster_multicast(PyObject *module, PyObject *args) {
  unsigned long long id;
  const char *name;
  if (!PyArg_ParseTuple(args, "Ky", &id, &name)) return NULL;
  multicast found = multicast_broadcaster_multicast((multicast_broadcaster){id}, name);
  return PyLong_FromUnsignedLongLong(found.id);
}

/* Called when a call has been queued, or when a run has left calls in the queue. `context` is the
 * queue's number in _queue.py. */
static void wake(void *context) {
  if (is_too_late()) return;
  if (current != NULL && current->is_run) { /* queue_run() may go on, so it decides */
    current->woken = context;
    return;
  }
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *number = PyLong_FromVoidPtr(context);
  if (number != NULL) call_back(on_wake, number, NULL);
  Py_XDECREF(number);
  PyGILState_Release(state);
}

static PyObject *queue_create(PyObject *module, PyObject *args) {
  multicast_queue_options how = MULTICAST_QUEUE_OPTIONS_INIT;
  Py_ssize_t capacity, number;
  if (!PyArg_ParseTuple(args, "nIn", &capacity, &how.overflow, &number)) return NULL;
  how.capacity = (size_t)capacity;
  how.wake = wake;
  how.wake_context = (void *)number;
  return PyLong_FromUnsignedLongLong(multicast_queue_create(&how).id);
}

static PyObject *queue_run(PyObject *module, PyObject *args) {
  unsigned long long id;
  Py_ssize_t max;
  int64_t count = 0, one = 1;
  frame here = {.is_run = 1};
  if (!PyArg_ParseTuple(args, "Kn", &id, &max) || !enter(&here)) return NULL;
  if (max <= 0) max = (Py_ssize_t)multicast_queue_wait((multicast_queue){id}, 0);
  /* Makes the calls one by one, so that after an interruption the other calls stay queued. */
  do {
    here.woken = NULL;
    one = multicast_queue_run((multicast_queue){id}, 1);
    count += one > 0;
  } while (count < max && one > 0 && here.interruption == NULL);
  current = here.outer;
  if (here.woken != NULL) wake(here.woken);
  if (!leave(&here)) return NULL;
  return count == 0 && one < 0 ? failed(one) : PyLong_FromLongLong(count);
}

static PyObject *queue_stats(PyObject *module, PyObject *handle) {
  multicast_queue_stats all = MULTICAST_QUEUE_STATS_INIT;
  multicast_status status =
      multicast_queue_get_stats((multicast_queue){PyLong_AsUnsignedLongLongMask(handle)}, &all);
  if (status < 0) return failed(status);
  return Py_BuildValue("(KKKKKKKK)", all.pending, all.queued, all.delivered, all.refused,
                       all.dropped, all.cancelled, all.coalesced, all.highest);
}

static PyObject *status_message(PyObject *module, PyObject *status) {
  return PyUnicode_FromString(multicast_status_message(PyLong_AsLong(status)));
}

/* Returns (token, event) of the innermost call on this thread, or (None, None). */
static PyObject *current_call(PyObject *module, PyObject *none) {
  const frame *here = current;
  while (here != NULL && here->token == NULL) here = here->outer;
  if (here == NULL) return Py_BuildValue("(OO)", Py_None, Py_None);
  return Py_BuildValue("(OI)", (PyObject *)here->token, (unsigned int)here->event);
}

/* ---- The module ------------------------------------------------------------------------------ */

static PyObject *setup(PyObject *module, PyObject *args) {
  PyObject *new_mark;
  if (!PyArg_ParseTuple(args, "OOOOOOOOS", &token_type, &coroutine_type, &fail, &group, &accepts,
                        &known, &on_coroutine, &on_wake, &new_mark))
    return NULL;
  memcpy(&mark, PyBytes_AsString(new_mark), sizeof mark);
  Py_INCREF(args); /* keeps all of them alive forever */
  Py_RETURN_NONE;
}

#define METHOD(name, function, flags) {name, (PyCFunction)(void (*)(void))function, flags, NULL}

static PyMethodDef core_methods[] = {
    {"invoke", (PyCFunction)(void (*)(void))core_invoke, METH_VARARGS | METH_KEYWORDS,
     "invoke($self, /, *args, event=0, sender=None, **kwargs)\n--\n\n"
     "Calls every delegate with the arguments, by priority, then by order of addition.\n\n"
     "Returns how many were called or queued. If delegates raise exceptions, the others are still\n"
     "called, and then the exceptions are raised as DelegateErrors. RecursionError, MemoryError,\n"
     "and exceptions that are not an Exception end the invocation immediately.\n\n"
     "event   Skips delegates whose `events` do not include it; current_event() returns it.\n"
     "sender  Skips delegates that were added with another `sender`."},
    METHOD("_run", core_run, METH_VARARGS),
    METHOD("_add", core_add, METH_VARARGS),
    METHOD("_tokens", core_tokens, METH_NOARGS),
    METHOD("_held", core_held, METH_NOARGS),
    METHOD("_open", core_open, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
static PyMemberDef core_members[] = {
    {"_handle", T_ULONGLONG, offsetof(core, handle), 0, NULL},
    {"_broadcaster", T_ULONGLONG, offsetof(core, broadcaster), 0, NULL},
    {"_name", T_OBJECT, offsetof(core, name), 0, NULL},
    {"_ownership", T_BYTE, offsetof(core, ownership), 0, NULL},
    {"_is_shared", T_BOOL, offsetof(core, is_shared), 0, NULL},
    {"_pauses", T_PYSSIZET, offsetof(core, pauses), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot core_slots[] = {
    {Py_tp_new, core_new},           {Py_tp_dealloc, core_dealloc},
    {Py_tp_traverse, core_traverse}, {Py_tp_finalize, core_finalize},
    {Py_tp_methods, core_methods},   {Py_tp_members, core_members},
    {Py_tp_call, core_call},         {0, NULL},
};
static PyMemberDef held_members[] = {
    {"_id", T_ULONGLONG, offsetof(held, token), READONLY, NULL},
    {"_number", T_ULONGLONG, offsetof(held, wire.number), READONLY, NULL},
    {"_function", T_OBJECT, offsetof(held, function), READONLY, NULL},
    {"_target", T_OBJECT, offsetof(held, target), READONLY, NULL},
    {"_sender", T_OBJECT, offsetof(held, sender), READONLY, NULL},
    {"queue", T_OBJECT, offsetof(held, queue), READONLY, "The queue of its calls, or None."},
    {"lifetime", T_OBJECT, offsetof(held, lifetime), READONLY, "What ends it, or None."},
    {"on_end", T_OBJECT, offsetof(held, on_end), 0,
     "A function that is called once, when it has ended and all calls have returned."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot held_slots[] = {
    {Py_tp_dealloc, held_dealloc}, {Py_tp_traverse, held_traverse},
    {Py_tp_clear, held_clear},     {Py_tp_members, held_members},
    {0, NULL},
};

#define FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE)
static PyType_Spec core_spec = {"multicast._core.Core", sizeof(core), 0, FLAGS, core_slots};
static PyType_Spec held_spec = {"multicast._core.Held", sizeof(held), 0, FLAGS, held_slots};

#define ENTRY(name, gives_lock_up, result) {#name, name, METH_O, NULL},
static PyMethodDef functions[] = {
    FUNCTIONS(ENTRY)
    {"wait", wait_for, METH_VARARGS, NULL},
    {"token_properties", token_properties, METH_O, NULL},
    {"queue_create", queue_create, METH_VARARGS, NULL},
    {"queue_run", queue_run, METH_VARARGS, NULL},
    {"queue_stats", queue_stats, METH_O, NULL},
    {"broadcaster_multicast", broadcaster_multicast, METH_VARARGS, NULL},
    {"current_call", current_call, METH_NOARGS, NULL},
    {"status_message", status_message, METH_O, NULL},
    {"setup", setup, METH_VARARGS, NULL},
    {"after_fork", after_fork, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **out) {
  *out = (PyTypeObject *)PyType_FromSpec(spec);
  Py_XINCREF(*out);
  return *out != NULL && PyModule_AddObject(module, name, (PyObject *)*out) == 0;
}

/* The process has one library and one set of these lists, so only one interpreter may use them. */
static int execute(PyObject *module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0 || core_type != NULL) {
    PyErr_SetString(PyExc_ImportError, "multicast works in the main interpreter only");
    return -1;
  }
  payloads = PyDict_New();
  greenlet_name = PyUnicode_InternFromString("greenlet");
  /* These handlers are registered after the library's handlers, so `is_forking` is still set when
   * the library releases objects in the child. */
  if (payloads == NULL || greenlet_name == NULL ||
      pthread_atfork(fork_begins, fork_is_over, NULL) != 0 ||
      !add_type(module, "Core", &core_spec, &core_type) ||
      !add_type(module, "Held", &held_spec, &held_type)) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return -1;
  }
  return 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "multicast._core", NULL, 0, functions, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
