/* multicast._core: the part of the Python module that the library calls, and that calls the library.
 *
 * Each registration is one delegate: the C function `call`, and as its context a Registration, the
 * Python object that has the callable. The library does the rest: order, events, removals, waits.
 *
 * The interpreter's lock. An invocation of a private multicast keeps it, and its delegates find it
 * held. An invocation that may wait for another thread, because C code has the handle or because the
 * multicast replays, gives it up first: that thread may need it, and the library cannot see that in
 * its search for cycles. A removal first tries without waiting, and gives the lock up only to wait.
 *
 * Payloads. A plain invocation passes the address of its frame, which is on the stack. Where a call
 * may outlive the invocation, or C code may look, the payload is a Call, and C sees its `wire`.
 *
 * Ownership. The library has one reference to each Registration and to each Call. Both are linked to
 * their multicast until the library releases them, and the multicast shows them to the garbage
 * collector. When a multicast is destroyed, the library releases all of them: so they are garbage
 * when the multicast is, and a multicast that refers to itself through a delegate is collected. */

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "multicast.h"

#define SLICE_NS 100000000u /* a thread that waits looks for signals as often */

enum { UNKNOWN = -2, ALL = -1 }; /* of Registration.limit */

typedef struct node {
  struct node *previous, *next;
} node;

typedef struct core core;

/* What the library has a reference to. */
typedef struct held {
  PyObject_HEAD
  node link;
  core *owner; /* NULL: the multicast belongs to C code, or its object is gone */
} held;

typedef struct registration {
  held base;
  multicast_token token;
  multicast target_id; /* its multicast */
  PyObject *function; /* NULL: what `target` refers to is called */
  PyObject *target;   /* a weak reference, or NULL; the first argument of `function` */
  PyObject *sender;   /* NULL; or a weak reference; or what a sender has to be equal to */
  char sender_is_weak;
  PyObject *queue, *lifetime, *on_end;
  PyObject *names; /* the keywords that it takes, or NULL: all */
  int limit;       /* the most arguments that it takes */
} registration;

typedef struct wire {
  uint64_t mark;
  uint32_t index, generation;
} wire;

typedef struct call_object {
  held base;
  PyObject *args, *kwargs, *sender;
  wire wire;
} call_object;

struct core {
  PyObject_HEAD
  multicast handle;
  node held, link;
  size_t queued; /* registrations with a queue */
  Py_ssize_t pauses;
  PyObject *name; /* bytes, of a broadcaster whose notifications are published */
  multicast_broadcaster broadcaster;
  enum { FOREIGN, OWNED, NAMED } ownership; /* C code's; this object's; a broadcaster's of Python */
  char is_shared, replays, defers, is_finished;
};

/* An invocation, a run of a queue, or a call from C, on the stack of its thread. */
typedef struct frame {
  struct frame *self; /* a copy of the bytes, which C code may have made, has another address */
  struct frame *outer;
  multicast target;
  PyObject *args, *kwargs, *sender, *results, *errors, *interruption;
  PyObject *greenlet;
  registration *token; /* what is being called */
  call_object *call;
  int64_t skipped;
  uint32_t event;
  char keeps_coroutines;
} frame;

static _Thread_local frame *current;

static node cores = {&cores, &cores}, orphans = {&orphans, &orphans}, deferred = {&deferred, &deferred};
static atomic_int is_over, is_forking;

static PyTypeObject *core_type, *registration_type, *call_type, *token_type;
static PyObject *fail, *group, *accepts, *on_coroutine, *on_wake, *get_greenlet;
static PyTypeObject *coroutine_type;

/* ---- Lists and payloads, under the interpreter's lock -------------------------------------------- */

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

static void hold(core *self, held *object) {
  object->owner = self->is_finished || self->ownership == FOREIGN ? NULL : self;
  insert(object->owner != NULL ? &self->held : &orphans, &object->link);
  Py_INCREF(object);
}

/* A wire that C code kept or invented names no call: its generation is over. */
static struct slot {
  call_object *call;
  uint32_t generation, next;
} *slots;
static uint32_t slot_count, first_free = UINT32_MAX;
static uint64_t mark;

static int take_slot(call_object *call) {
  if (first_free == UINT32_MAX) {
    uint32_t count = slot_count == 0 ? 64 : 2 * slot_count;
    struct slot *more = PyMem_Realloc(slots, count * sizeof *slots);
    if (more == NULL) return PyErr_NoMemory(), 0;
    slots = more;
    for (; slot_count < count; slot_count++) {
      slots[slot_count] = (struct slot){NULL, 0, first_free};
      first_free = slot_count;
    }
  }
  uint32_t index = first_free;
  first_free = slots[index].next;
  slots[index].call = call;
  call->wire = (wire){mark, index, slots[index].generation};
  return 1;
}

static void give_slot(call_object *call) {
  struct slot *slot = &slots[call->wire.index];
  slot->call = NULL;
  slot->generation++;
  slot->next = first_free;
  first_free = call->wire.index;
}

static call_object *find_call(const void *payload, size_t size) {
  wire seen;
  if (payload == NULL || size != sizeof seen) return NULL;
  memcpy(&seen, payload, sizeof seen);
  if (seen.index >= slot_count || slots[seen.index].call == NULL) return NULL;
  call_object *call = slots[seen.index].call;
  return memcmp(&seen, &call->wire, sizeof seen) == 0 ? call : NULL;
}

/* ---- Calling a delegate, under the interpreter's lock -------------------------------------------- */

static void note(frame *here, PyObject *error) {
  /* With the last two it would only get worse: each delegate would recurse, or need memory, again. */
  int ends = !PyErr_GivenExceptionMatches(error, PyExc_Exception) ||
             PyErr_GivenExceptionMatches(error, PyExc_RecursionError) ||
             PyErr_GivenExceptionMatches(error, PyExc_MemoryError);
  if (!ends && here->errors == NULL) ends = (here->errors = PyList_New(0)) == NULL;
  if (!ends) ends = PyList_Append(here->errors, error) < 0;
  PyErr_Clear();
  if (ends && here->interruption == NULL) {
    Py_INCREF(error);
    here->interruption = error;
  }
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

/* How many arguments it takes, and which keywords; asked at its first call. */
static int learn(registration *token, PyObject *function) {
  PyObject *found = PyObject_CallFunctionObjArgs(
      accepts, function, token->function != NULL && token->target != NULL ? Py_True : Py_False, NULL);
  if (found == NULL) return 0;
  PyObject *names = PyTuple_GetItem(found, 1);
  token->limit = (int)PyLong_AsLong(PyTuple_GetItem(found, 0));
  if (names != Py_None && token->names == NULL) {
    Py_INCREF(names);
    token->names = names;
  }
  Py_DECREF(found);
  return 1;
}

static PyObject *known_names(PyObject *kwargs, PyObject *names) {
  PyObject *known = PyDict_New(), *name, *value;
  Py_ssize_t position = 0;
  while (known != NULL && PyDict_Next(kwargs, &position, &name, &value)) {
    int has = PySequence_Contains(names, name);
    if (has < 0 || (has > 0 && PyDict_SetItem(known, name, value) < 0)) Py_CLEAR(known);
  }
  return known;
}

/* Calls function([strong,] arguments ...), with as many of them as it takes. */
static PyObject *call_with(registration *token, PyObject *function, PyObject *strong, frame *here) {
  PyObject *args = here->args, *kwargs = here->kwargs, *result = NULL;
  Py_ssize_t count = PyTuple_Size(args);
  if (token->limit == UNKNOWN && !learn(token, function)) return NULL;
  if (token->limit != ALL && token->limit < count) count = token->limit;
  if (kwargs == NULL && strong != NULL && count <= 1)
    return PyObject_CallFunctionObjArgs(function, strong, count > 0 ? PyTuple_GetItem(args, 0) : NULL,
                                        NULL);
  if (strong != NULL) {
    PyObject *all = PyTuple_New(count + 1);
    for (Py_ssize_t i = -1; all != NULL && i < count; i++) {
      PyObject *one = i < 0 ? strong : PyTuple_GetItem(args, i);
      Py_INCREF(one);
      PyTuple_SetItem(all, i + 1, one);
    }
    args = all;
  } else if (count < PyTuple_Size(args)) {
    args = PyTuple_GetSlice(args, 0, count);
  } else {
    Py_INCREF(args);
  }
  if (kwargs != NULL && token->names != NULL)
    kwargs = known_names(kwargs, token->names);
  else
    Py_XINCREF(kwargs);
  if (args != NULL && (kwargs != NULL || here->kwargs == NULL))
    result = PyObject_Call(function, args, kwargs);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

/* Whether the sender of the invocation is the one that the delegate wants; -1: an exception. */
static int is_from(registration *token, PyObject *sender) {
  if (sender == NULL) return 0;
  if (token->sender_is_weak) return PyWeakref_GetObject(token->sender) == sender;
  return token->sender == sender ? 1 : PyObject_RichCompareBool(token->sender, sender, Py_EQ);
}

static void call_in(registration *token, frame *here) {
  if (here->interruption != NULL) {
    here->skipped++;
    return;
  }
  if (token->sender != NULL) {
    int is_sender = is_from(token, here->sender);
    if (is_sender < 0) note_error(here);
    if (is_sender <= 0) {
      here->skipped++;
      return;
    }
  }
  PyObject *function = token->function, *strong = NULL, *result;
  if (token->target != NULL) {
    strong = PyWeakref_GetObject(token->target);
    if (strong == Py_None) {
      here->skipped++;
      return;
    }
    Py_INCREF(strong);
    if (function == NULL) {
      function = strong;
      strong = NULL;
    }
  }
  if (function == NULL) { /* the collector has cleared it */
    here->skipped++;
    return;
  }
  if (strong != NULL || token->target == NULL) Py_INCREF(function);
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

/* Says what delegates raised that C code has called: there is nobody to raise it to. */
static void report(frame *here) {
  for (Py_ssize_t i = 0; here->errors != NULL && i < PyList_Size(here->errors); i++) {
    PyObject *error = PyList_GetItem(here->errors, i);
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    PyErr_WriteUnraisable(NULL);
  }
  if (here->interruption != NULL) {
    if (PyErr_GivenExceptionMatches(here->interruption, PyExc_KeyboardInterrupt)) {
      PyErr_SetInterrupt(); /* again, where Python code sees it */
    } else {
      PyErr_SetObject((PyObject *)Py_TYPE(here->interruption), here->interruption);
      PyErr_WriteUnraisable(NULL);
    }
  }
}

/* A call of a queue, a replay, a deferred invocation, or one from C code. */
static void call_foreign(registration *token, uint32_t event, const void *payload, size_t size) {
  if (atomic_load(&is_over)) return;
  PyGILState_STATE state = PyGILState_Ensure();
  frame *outer = current;
  call_object *call = find_call(payload, size);
  frame here = {.self = &here, .outer = outer, .target = token->target_id, .event = event};
  if (outer != NULL) here.greenlet = outer->greenlet;
  if (call != NULL) {
    Py_INCREF(call);
    here.call = call;
    here.args = call->args;
    here.kwargs = call->kwargs;
    here.sender = call->sender;
    Py_INCREF(here.args);
  } else {
    here.args = payload == NULL ? Py_BuildValue("(O)", Py_None)
                                : Py_BuildValue("(y#)", payload, (Py_ssize_t)size);
  }
  if (outer != NULL && outer->target.id == here.target.id && token->queue == NULL) {
    here.results = outer->results;
    here.keeps_coroutines = outer->keeps_coroutines;
  }
  current = &here;
  if (outer != NULL && outer->interruption != NULL)
    here.skipped = 1;
  else if (here.args == NULL)
    note_error(&here);
  else
    call_in(token, &here);
  current = outer;
  if (outer == NULL) {
    report(&here);
  } else {
    outer->skipped += here.skipped;
    for (Py_ssize_t i = 0; here.errors != NULL && i < PyList_Size(here.errors); i++)
      note(outer, PyList_GetItem(here.errors, i));
    if (here.interruption != NULL) note(outer, here.interruption);
  }
  Py_XDECREF(here.errors);
  Py_XDECREF(here.interruption);
  Py_XDECREF(here.args);
  Py_XDECREF((PyObject *)call);
  PyGILState_Release(state);
}

/* The function of every delegate. */
static void call(void *context, uint32_t event, const void *payload, size_t size) {
  const frame *here = payload;
  if (size == sizeof *here && here->self == here)
    call_in(context, (frame *)payload);
  else
    call_foreign(context, event, payload, size);
}

/* ---- Releasing ------------------------------------------------------------------------------------ */

/* Runs Python code: what the callable refers to may go, and `on_end` is called. */
static void let_go(held *object) {
  if (Py_TYPE(object) != call_type) {
    registration *token = (registration *)object;
    PyObject *on_end = token->on_end;
    token->on_end = NULL;
    Py_CLEAR(token->target);
    Py_CLEAR(token->sender);
    Py_CLEAR(token->function);
    Py_CLEAR(token->queue);
    Py_CLEAR(token->lifetime);
    if (on_end != NULL) {
      PyObject *result = PyObject_CallFunctionObjArgs(on_end, NULL);
      if (result == NULL) PyErr_WriteUnraisable(on_end);
      Py_XDECREF(result);
      Py_DECREF(on_end);
    }
  }
  Py_DECREF(object);
}

static void let_deferred_go(void) {
  while (deferred.next != &deferred && !atomic_load(&is_forking)) {
    held *object = held_of(deferred.next);
    take_out(&object->link);
    let_go(object);
  }
}

/* The library has given up its reference. While the process forks no Python code runs: the objects
 * wait until the fork is over. */
static void released(held *object) {
  if (atomic_load(&is_over)) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  take_out(&object->link);
  if (Py_TYPE(object) == call_type)
    give_slot((call_object *)object);
  else if (object->owner != NULL && ((registration *)object)->queue != NULL)
    object->owner->queued--;
  object->owner = NULL;
  insert(&deferred, &object->link);
  let_deferred_go();
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

static void release_context(void *context) { released(context); }

static void release_payload(const void *payload, size_t size) {
  (void)size;
  released((held *)((char *)payload - offsetof(call_object, wire)));
}

static void fork_begins(void) { atomic_store(&is_forking, 1); }
static void fork_is_over(void) { atomic_store(&is_forking, 0); }

/* In the parent and in the child. In the child the calls that wait in queues are not made, and not
 * released: they are the parent's. Calls of this thread go on. Deferred ones and replays, too. */
static PyObject *after_fork(PyObject *module, PyObject *new_mark) {
  (void)module;
  fork_is_over();
  if (new_mark != Py_None) {
    mark = PyLong_AsUnsignedLongLong(new_mark);
    for (node *one = cores.next; one != &cores; one = one->next) {
      core *self = (core *)((char *)one - offsetof(core, link));
      if (self->replays || self->defers) continue;
      for (node *link = self->held.next, *next; link != &self->held; link = next) {
        held *object = held_of(link);
        next = link->next;
        if (Py_TYPE(object) != call_type) continue;
        const frame *user = current;
        while (user != NULL && (held *)user->call != object) user = user->outer;
        if (user != NULL) continue;
        take_out(link);
        give_slot((call_object *)object);
        insert(&deferred, link);
      }
    }
  }
  let_deferred_go();
  Py_RETURN_NONE;
}

/* ---- Invoking -------------------------------------------------------------------------------------- */

static PyObject *failed(int64_t status) {
  PyObject *result = PyObject_CallFunction(fail, "L", (long long)status);
  Py_XDECREF(result);
  if (result != NULL) PyErr_SetString(PyExc_SystemError, "a status that is no error");
  return NULL;
}

/* Greenlets switch the stack under the library's feet: only one of a thread can be in a delegate. */
static int enter(frame *here) {
  here->self = here;
  here->outer = current;
  if (get_greenlet != NULL) {
    here->greenlet = PyObject_CallFunctionObjArgs(get_greenlet, NULL);
    if (here->greenlet == NULL) return 0;
    Py_DECREF(here->greenlet); /* it runs: it stays as long as the frame */
    if (current != NULL && current->greenlet != NULL && current->greenlet != here->greenlet) {
      PyErr_SetString(PyExc_RuntimeError, "another greenlet of this thread is inside a delegate");
      return 0;
    }
  }
  current = here;
  return 1;
}

/* Raises what the delegates have raised. */
static int leave(frame *here) {
  current = here->outer;
  if (here->interruption != NULL) {
    PyErr_SetObject((PyObject *)Py_TYPE(here->interruption), here->interruption);
    Py_CLEAR(here->interruption);
    Py_CLEAR(here->errors);
    return 0;
  }
  if (here->errors != NULL) {
    PyObject *all = PyObject_CallFunctionObjArgs(group, here->errors, NULL);
    if (all != NULL) PyErr_SetObject((PyObject *)Py_TYPE(all), all);
    Py_XDECREF(all);
    Py_CLEAR(here->errors);
    return 0;
  }
  return 1;
}

static call_object *new_call(core *self, frame *here) {
  call_object *made = (call_object *)PyType_GenericAlloc(call_type, 0);
  if (made == NULL || !take_slot(made)) {
    Py_XDECREF((PyObject *)made);
    return NULL;
  }
  Py_INCREF(here->args);
  Py_XINCREF(here->kwargs);
  Py_XINCREF(here->sender);
  made->args = here->args;
  made->kwargs = here->kwargs;
  made->sender = here->sender;
  hold(self, &made->base);
  return made;
}

/* An invocation whose payload may outlive it, or is seen by C code. */
static int64_t invoke_held(core *self, frame *here) {
  multicast_invocation how = MULTICAST_INVOCATION_INIT;
  PyObject *only = PyTuple_Size(here->args) == 1 && here->kwargs == NULL && here->sender == NULL &&
                           self->is_shared
                       ? PyTuple_GetItem(here->args, 0)
                       : NULL;
  how.event = here->event;
  if (only != NULL && PyBytes_CheckExact(only)) {
    char *bytes;
    Py_ssize_t size;
    PyBytes_AsStringAndSize(only, &bytes, &size);
    how.payload = size > 0 ? bytes : "";
    how.size = (size_t)size;
  } else if (only != Py_None) {
    here->call = new_call(self, here);
    if (here->call == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
    how.payload = &here->call->wire;
    how.size = sizeof here->call->wire;
    how.release = release_payload;
  }
  PyThreadState *state = self->is_shared || self->replays ? PyEval_SaveThread() : NULL;
  int64_t count = self->name != NULL && self->is_shared ? multicast_broadcaster_notify_with(
                                           self->broadcaster, PyBytes_AsString(self->name), &how, NULL)
                                     : multicast_invoke_with(self->handle, &how, NULL);
  if (state != NULL) PyEval_RestoreThread(state);
  Py_XDECREF((PyObject *)here->call);
  return count;
}

static PyObject *invoke_in(core *self, frame *here) {
  if (self->pauses > 0) return PyLong_FromLong(0);
  here->target = self->handle;
  if (!enter(here)) return NULL;
  int64_t count = self->is_shared || self->queued > 0 || self->replays || self->defers
                      ? invoke_held(self, here)
                      : multicast_invoke(self->handle, here->event, here, sizeof *here);
  if (!leave(here) || PyErr_Occurred()) return NULL;
  if (count == MULTICAST_ERROR_LIMIT && !self->defers) {
    PyErr_SetString(PyExc_RecursionError, "256 invocations are nested");
    return NULL;
  }
  return count < 0 ? failed(count) : PyLong_FromLongLong(count - here->skipped);
}

static PyObject *core_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  frame here = {.args = args, .kwargs = kwargs};
  return invoke_in((core *)self, &here);
}

/* Takes `event` and `sender` out of the keywords, which are this call's own. */
static int take_options(frame *here) {
  here->kwargs = PyDict_Copy(here->kwargs); /* it may be the caller's own */
  if (here->kwargs == NULL) return 0;
  PyObject *event = PyDict_GetItemString(here->kwargs, "event");
  here->sender = PyDict_GetItemString(here->kwargs, "sender");
  if (event != NULL) {
    unsigned long long number = PyLong_AsUnsignedLongLong(event);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return 0;
    if (PyErr_Occurred() || number > UINT32_MAX) {
      PyErr_Clear();
      PyErr_Format(PyExc_ValueError, "an event is from 0 to 2^32 - 1: %R", event);
      return 0;
    }
    here->event = (uint32_t)number;
    PyDict_DelItemString(here->kwargs, "event");
  }
  if (here->sender == Py_None) here->sender = NULL;
  Py_XINCREF(here->sender);
  if (PyDict_GetItemString(here->kwargs, "sender") != NULL) PyDict_DelItemString(here->kwargs, "sender");
  if (PyDict_Size(here->kwargs) == 0) Py_CLEAR(here->kwargs);
  return 1;
}

static PyObject *core_invoke(core *self, PyObject *args, PyObject *kwargs) {
  frame here = {.args = args, .kwargs = kwargs};
  if (kwargs == NULL) return invoke_in(self, &here);
  PyObject *count = take_options(&here) ? invoke_in(self, &here) : NULL;
  Py_XDECREF(here.sender);
  Py_XDECREF(here.kwargs);
  return count;
}

static PyObject *collect_with(core *self, PyObject *args, PyObject *kwargs, char keeps_coroutines) {
  frame here = {.args = args, .kwargs = kwargs, .results = PyList_New(0)};
  here.keeps_coroutines = keeps_coroutines;
  PyObject *count = NULL;
  if (here.results != NULL && (kwargs == NULL || take_options(&here))) count = invoke_in(self, &here);
  if (kwargs != NULL) Py_XDECREF(here.kwargs);
  Py_XDECREF(here.sender);
  if (count == NULL) Py_CLEAR(here.results);
  Py_XDECREF(count);
  return here.results;
}

static PyObject *core_collect(core *self, PyObject *args, PyObject *kwargs) {
  return collect_with(self, args, kwargs, 0);
}

static PyObject *core_collect_awaitable(core *self, PyObject *args, PyObject *kwargs) {
  return collect_with(self, args, kwargs, 1);
}

/* ---- Adding and finding ---------------------------------------------------------------------------- */

/* The object of a weak registration is gone. */
static PyObject *target_is_gone(PyObject *token, PyObject *reference) {
  (void)reference;
  multicast_token_remove_within(((registration *)token)->token, 0);
  Py_RETURN_NONE;
}

static PyMethodDef target_is_gone_method = {"target_is_gone", target_is_gone, METH_O, NULL};

static int refer(registration *token, PyObject *object, PyObject **out) {
  PyObject *gone = PyCFunction_NewEx(&target_is_gone_method, (PyObject *)token, NULL);
  if (gone == NULL) return 0;
  *out = PyWeakref_NewRef(object, gone);
  Py_DECREF(gone);
  return *out != NULL;
}

static int is_equal(registration *token, PyObject *function, PyObject *target) {
  PyObject *own = token->target != NULL ? PyWeakref_GetObject(token->target) : Py_None;
  if (token->target != NULL && own == Py_None) return 0;
  if (token->function == NULL) return own == (function == Py_None ? target : function);
  if (own != target) return 0;
  if (token->function == function) return 1;
  if (Py_TYPE(token->function) != Py_TYPE(function)) return 0;
  Py_INCREF(token);
  PyObject *mine = token->function;
  Py_INCREF(mine);
  int result = PyObject_RichCompareBool(mine, function, Py_EQ);
  if (result < 0) PyErr_Clear(); /* what cannot be compared is not equal */
  Py_DECREF(mine);
  Py_DECREF(token);
  return result > 0;
}

/* Registrations of this object that the library has not released: also removed ones that run. */
static PyObject *core_held(core *self, PyObject *none) {
  (void)none;
  PyObject *list = PyList_New(0);
  const node *head = self->ownership == FOREIGN ? &orphans : &self->held;
  for (node *one = head->next; list != NULL && one != head; one = one->next) {
    registration *token = (registration *)held_of(one);
    if (Py_TYPE(token) != token_type || token->token.id == 0) continue;
    if (token->target_id.id == self->handle.id && PyList_Append(list, (PyObject *)token) < 0)
      Py_CLEAR(list);
  }
  return list;
}

/* Those among `all` that were added with an equal callable. */
static PyObject *find_equal(PyObject *module, PyObject *args) {
  PyObject *all, *original, *function, *target;
  (void)module;
  if (!PyArg_ParseTuple(args, "O!OOO", &PyList_Type, &all, &original, &function, &target)) return NULL;
  PyObject *found = PyList_New(0);
  for (Py_ssize_t i = 0; found != NULL && i < PyList_Size(all); i++) {
    registration *token = (registration *)PyList_GetItem(all, i);
    if (Py_TYPE(token) != token_type) continue;
    if ((is_equal(token, function, target) || is_equal(token, original, Py_None)) &&
        PyList_Append(found, (PyObject *)token) < 0)
      Py_CLEAR(found);
  }
  return found;
}

static void own(PyObject **field, PyObject *value) {
  if (value == Py_None) return;
  Py_INCREF(value);
  *field = value;
}

static registration *new_registration(PyObject *function, PyObject *target) {
  registration *token = (registration *)PyType_GenericAlloc(token_type, 0);
  if (token == NULL) return NULL;
  token->base.link.previous = token->base.link.next = &token->base.link;
  token->limit = UNKNOWN;
  own(&token->function, function);
  if (target == Py_None || refer(token, target, &token->target)) return token;
  if (PyErr_ExceptionMatches(PyExc_TypeError))
    PyErr_Format(PyExc_TypeError, "an object of type %R cannot be held weakly: give weak=False",
                 Py_TYPE(target));
  Py_DECREF(token);
  return NULL;
}

static PyObject *core_add(core *self, PyObject *args) {
  PyObject *function, *target, *sender, *queue, *lifetime, *old = NULL;
  unsigned long long queue_id, lifetime_id, events;
  long long priority;
  unsigned int flags;
  multicast_add_options how = MULTICAST_ADD_OPTIONS_INIT;
  if (!PyArg_ParseTuple(args, "OOOOKOKLKIz", &function, &target, &sender, &queue, &queue_id, &lifetime,
                        &lifetime_id, &priority, &events, &flags, &how.label))
    return NULL;
  if (priority < INT32_MIN || priority > INT32_MAX)
    return PyErr_Format(PyExc_ValueError, "a priority is from -2^31 to 2^31 - 1: %lld", priority);
  registration *token = new_registration(function, target);
  if (token == NULL) return NULL;
  token->target_id = self->handle;
  token->sender_is_weak = sender != Py_None && refer(token, sender, &token->sender);
  if (!token->sender_is_weak) {
    PyErr_Clear(); /* numbers and texts cannot be referred to: they are compared */
    own(&token->sender, sender);
  }
  own(&token->queue, queue);
  own(&token->lifetime, lifetime);
  how.flags = flags & ~MULTICAST_UNIQUE;
  how.priority = (int32_t)priority;
  how.events = events;
  how.queue.id = queue_id;
  how.lifetime.id = lifetime_id;
  how.release = release_context;
  frame here = {.target = self->handle};
  if (!enter(&here)) {
    Py_DECREF(token);
    return NULL;
  }
  if (flags & MULTICAST_UNIQUE) old = core_held(self, NULL);
  hold(self, &token->base);
  if (token->queue != NULL && token->base.owner != NULL) self->queued++;
  PyThreadState *state = self->replays || self->is_shared ? PyEval_SaveThread() : NULL;
  multicast_status status =
      multicast_add(self->handle, (multicast_delegate){call, token}, &how, &token->token);
  if (state != NULL) PyEval_RestoreThread(state);
  for (Py_ssize_t i = 0; old != NULL && i < PyList_Size(old); i++) {
    registration *other = (registration *)PyList_GetItem(old, i);
    if (is_equal(other, function, target)) multicast_token_remove_within(other->token, 0);
  }
  Py_XDECREF(old);
  if (leave(&here) && status == MULTICAST_OK) return (PyObject *)token;
  if (status == MULTICAST_OK)
    multicast_token_remove_within(token->token, 0); /* a replay has raised: nothing was added */
  else if (!PyErr_Occurred())
    failed(status);
  Py_DECREF(token);
  return NULL;
}

struct collected {
  PyObject *list;
};

static bool collect_token(void *context, const multicast_registration *one) {
  struct collected *all = context;
  PyObject *item = one->delegate.function == call ? (PyObject *)one->delegate.context : NULL;
  if (item != NULL)
    Py_INCREF(item);
  else
    item = PyLong_FromUnsignedLongLong(one->token.id);
  if (item == NULL || PyList_Append(all->list, item) < 0) Py_CLEAR(all->list);
  Py_XDECREF(item);
  return all->list != NULL;
}

/* All registrations in the order of invocation; those of C code as numbers. */
static PyObject *core_tokens(core *self, PyObject *none) {
  (void)none;
  struct collected all = {PyList_New(0)};
  int64_t count = all.list == NULL ? 0 : multicast_enumerate(self->handle, collect_token, &all);
  if (count >= 0) return all.list;
  Py_XDECREF(all.list);
  return count == MULTICAST_ERROR_INVALID_HANDLE ? PyList_New(0) : failed(count);
}

/* ---- A multicast ------------------------------------------------------------------------------------ */

static void changed(void *context, multicast target, bool has_listeners) {
  registration *hook = context;
  (void)target;
  if (atomic_load(&is_over)) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace, *args = Py_BuildValue("(O)", has_listeners ? Py_True : Py_False);
  PyErr_Fetch(&type, &value, &trace);
  frame here = {.self = &here, .outer = current, .args = args};
  if (current != NULL) here.greenlet = current->greenlet;
  current = &here;
  if (args != NULL) call_in(hook, &here);
  current = here.outer;
  report(&here);
  Py_XDECREF(here.errors);
  Py_XDECREF(here.interruption);
  Py_XDECREF(args);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args;
  (void)kwargs;
  core *self = (core *)PyType_GenericAlloc(type, 0);
  if (self == NULL) return NULL;
  self->held.previous = self->held.next = &self->held;
  self->is_finished = 1;
  insert(&cores, &self->link);
  return (PyObject *)self;
}

static PyObject *core_open(core *self, PyObject *args) {
  multicast_create_options how = MULTICAST_CREATE_OPTIONS_INIT;
  PyObject *function, *target;
  registration *hook = NULL;
  if (!PyArg_ParseTuple(args, "zIIOO", &how.label, &how.reentry, &how.replay, &function, &target))
    return NULL;
  if (self->handle.id != 0) return failed(MULTICAST_ERROR_STATE);
  self->ownership = OWNED;
  self->is_finished = 0;
  self->replays = how.replay > 0;
  self->defers = how.reentry >= MULTICAST_REENTRY_DEFER;
  if (function != Py_None) {
    hook = new_registration(function, target);
    if (hook == NULL) return NULL;
    hook->limit = ALL;
    hold(self, &hook->base);
    how.context = hook;
    how.listeners_changed = changed;
    how.release = release_context;
  }
  self->handle = multicast_create_with(&how);
  if (self->handle.id == 0 && hook != NULL) release_context(hook);
  Py_XDECREF((PyObject *)hook);
  if (self->handle.id == 0) return failed(multicast_create_error());
  Py_RETURN_NONE;
}

/* A multicast of C code, or of a broadcaster. */
static PyObject *core_adopt(core *self, PyObject *args) {
  unsigned long long handle, broadcaster;
  PyObject *name;
  int ownership, is_published;
  if (!PyArg_ParseTuple(args, "KKOip", &handle, &broadcaster, &name, &ownership, &is_published))
    return NULL;
  if (!multicast_is_valid((multicast){handle})) return failed(MULTICAST_ERROR_INVALID_HANDLE);
  self->handle.id = handle;
  self->broadcaster.id = broadcaster;
  self->ownership = ownership;
  self->is_shared = (char)is_published;
  self->is_finished = 0;
  own(&self->name, name);
  Py_RETURN_NONE;
}

/* From now on C code may use the multicast. */
static PyObject *core_share(core *self, PyObject *none) {
  (void)none;
  self->is_shared = 1;
  return PyLong_FromUnsignedLongLong(self->handle.id);
}

static PyObject *core_pause(core *self, PyObject *change) {
  Py_ssize_t by = PyLong_AsSsize_t(change);
  if (by == -1 && PyErr_Occurred()) return NULL;
  self->pauses += by;
  return PyLong_FromSsize_t(self->pauses);
}

static PyObject *core_has_listeners(core *self, void *closure) {
  (void)closure;
  return PyBool_FromLong(multicast_has_listeners(multicast_listener_flag(self->handle)));
}

static PyObject *core_handle(core *self, void *closure) {
  (void)closure;
  return PyLong_FromUnsignedLongLong(self->handle.id);
}

static Py_ssize_t core_length(PyObject *self) {
  int64_t count = multicast_count(((core *)self)->handle);
  return count < 0 ? 0 : (Py_ssize_t)count;
}

static int core_is_true(PyObject *self) {
  (void)self;
  return 1;
}

/* Nothing refers to it any more. Those of C code stay, with their registrations. */
static void core_finalize(PyObject *object) {
  core *self = (core *)object;
  if (self->is_finished) return;
  self->is_finished = 1;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (self->ownership == OWNED)
    multicast_destroy_within(self->handle, 0);
  else if (self->ownership == NAMED)
    multicast_remove_all_within(self->handle, 0, NULL);
  PyErr_Restore(type, value, trace);
}

static int core_traverse(PyObject *object, visitproc visit, void *arg) {
  core *self = (core *)object;
  Py_VISIT(Py_TYPE(object));
  for (node *one = self->held.next; one != &self->held; one = one->next) Py_VISIT(held_of(one));
  return 0;
}

static void core_dealloc(PyObject *object) {
  core *self = (core *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  core_finalize(object);
  while (self->held.next != &self->held) { /* calls of these still run */
    held *one = held_of(self->held.next);
    take_out(&one->link);
    one->owner = NULL;
    insert(&orphans, &one->link);
  }
  take_out(&self->link);
  Py_CLEAR(self->name);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* ---- Registrations and calls ------------------------------------------------------------------------- */

static int registration_traverse(PyObject *object, visitproc visit, void *arg) {
  registration *self = (registration *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->function);
  Py_VISIT(self->target);
  Py_VISIT(self->sender);
  Py_VISIT(self->queue);
  Py_VISIT(self->lifetime);
  Py_VISIT(self->on_end);
  Py_VISIT(self->names);
  return 0;
}

static int registration_clear(PyObject *object) {
  registration *self = (registration *)object;
  Py_CLEAR(self->function);
  Py_CLEAR(self->target);
  Py_CLEAR(self->sender);
  Py_CLEAR(self->lifetime);
  Py_CLEAR(self->on_end);
  Py_CLEAR(self->names);
  return 0;
}

static void registration_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  registration_clear(object);
  Py_CLEAR(((registration *)object)->queue);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static int call_traverse(PyObject *object, visitproc visit, void *arg) {
  call_object *self = (call_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->args);
  Py_VISIT(self->kwargs);
  Py_VISIT(self->sender);
  return 0;
}

static void call_dealloc(PyObject *object) {
  call_object *self = (call_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_CLEAR(self->args);
  Py_CLEAR(self->kwargs);
  Py_CLEAR(self->sender);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* ---- Waiting ------------------------------------------------------------------------------------------ */

static int to_ns(PyObject *seconds, uint64_t *out) {
  *out = MULTICAST_FOREVER;
  if (seconds == Py_None) return 1;
  double limit = PyFloat_AsDouble(seconds);
  if (limit == -1 && PyErr_Occurred()) return 0;
  if (limit != limit) return PyErr_SetString(PyExc_ValueError, "a timeout is a number"), 0;
  if (limit < 1e10) *out = limit <= 0 ? 0 : (uint64_t)(limit * 1e9);
  return 1;
}

/* Waits in slices until `wait` returns another status; signals are handled in between. */
static int64_t wait_sliced(int64_t (*wait)(uint64_t, uint64_t), uint64_t handle, uint64_t left) {
  int64_t status;
  do {
    uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
    Py_BEGIN_ALLOW_THREADS
    status = wait(handle, slice);
    Py_END_ALLOW_THREADS
    if (left != MULTICAST_FOREVER) left -= slice;
    if (status == MULTICAST_ERROR_TIMEOUT && PyErr_CheckSignals() < 0) break;
  } while (status == MULTICAST_ERROR_TIMEOUT && left > 0);
  return status;
}

static int64_t ended(uint64_t handle, uint64_t limit) { return multicast_ended_within(handle, limit); }
static int64_t queued(uint64_t handle, uint64_t limit) {
  return multicast_queue_wait((multicast_queue){handle}, limit);
}

/* True: it is over. False: waiting is not possible, or nothing has ended it. */
static PyObject *wait_ended(PyObject *module, PyObject *args) {
  unsigned long long handle;
  PyObject *timeout;
  uint64_t limit;
  (void)module;
  if (!PyArg_ParseTuple(args, "KO", &handle, &timeout) || !to_ns(timeout, &limit)) return NULL;
  int64_t status = multicast_ended_within(handle, 0);
  if (status == MULTICAST_ERROR_TIMEOUT && limit > 0) status = wait_sliced(ended, handle, limit);
  if (PyErr_Occurred()) return NULL;
  if (status == MULTICAST_ERROR_TIMEOUT) {
    PyErr_SetString(PyExc_TimeoutError, "removed, but a call still runs on another thread");
    return NULL;
  }
  if (status < 0 && status != MULTICAST_ERROR_STATE && status != MULTICAST_ERROR_INVALID_HANDLE)
    return failed(status);
  return PyBool_FromLong(status == MULTICAST_OK || status == MULTICAST_ERROR_INVALID_HANDLE);
}

static PyObject *queue_wait(PyObject *module, PyObject *args) {
  unsigned long long handle;
  PyObject *timeout;
  uint64_t limit;
  (void)module;
  if (!PyArg_ParseTuple(args, "KO", &handle, &timeout) || !to_ns(timeout, &limit)) return NULL;
  int64_t count = wait_sliced(queued, handle, limit);
  if (PyErr_Occurred()) return NULL;
  if (count == MULTICAST_ERROR_TIMEOUT) return PyLong_FromLong(0);
  return count < 0 ? failed(count) : PyLong_FromLongLong(count);
}

/* ---- Functions of handles ------------------------------------------------------------------------------- */

#define HANDLE(name)                                                         \
  unsigned long long name = PyLong_AsUnsignedLongLong(argument);             \
  (void)module;                                                              \
  if (name == (unsigned long long)-1 && PyErr_Occurred()) return NULL

/* Each removes at once, and does not wait: wait_ended() does. The result is the library's status. */
#define ENDS(function, type, call)                                           \
  static PyObject *function(PyObject *module, PyObject *argument) {          \
    HANDLE(id);                                                              \
    return PyLong_FromLongLong(call((type){id}, 0));                         \
  }
ENDS(end_token, multicast_token, multicast_token_remove_within)
ENDS(end_multicast, multicast, multicast_destroy_within)
ENDS(end_lifetime, multicast_lifetime, multicast_lifetime_end_within)
ENDS(end_queue, multicast_queue, multicast_queue_destroy_within)
ENDS(end_broadcaster, multicast_broadcaster, multicast_broadcaster_destroy_within)

static PyObject *clear(PyObject *module, PyObject *argument) {
  HANDLE(id);
  int64_t count = multicast_remove_all_within((multicast){id}, 0, NULL);
  return count < 0 ? failed(count) : PyLong_FromLongLong(count);
}

/* Functions that return a status or a count. */
#define COUNTS(function, type, call)                                         \
  static PyObject *function(PyObject *module, PyObject *argument) {          \
    HANDLE(id);                                                              \
    int64_t result = call((type){id});                                       \
    return result < 0 ? failed(result) : PyLong_FromLongLong(result);        \
  }
COUNTS(token_pause, multicast_token, multicast_token_pause)
COUNTS(token_resume, multicast_token, multicast_token_resume)
COUNTS(lifetime_count, multicast_lifetime, multicast_lifetime_count)
COUNTS(queue_clear, multicast_queue, multicast_queue_clear)

static PyObject *queue_fd(PyObject *module, PyObject *argument) {
  HANDLE(id);
  return PyLong_FromLong(multicast_queue_fd((multicast_queue){id}));
}

static PyObject *is_valid(PyObject *module, PyObject *argument) {
  HANDLE(id);
  return PyBool_FromLong(multicast_token_is_valid((multicast_token){id}) ||
                         multicast_is_valid((multicast){id}) ||
                         multicast_lifetime_is_valid((multicast_lifetime){id}) ||
                         multicast_queue_is_valid((multicast_queue){id}));
}

/* (priority, events, is_paused, label), or None if it has ended. */
static PyObject *token_properties(PyObject *module, PyObject *argument) {
  HANDLE(id);
  multicast_registration one = MULTICAST_REGISTRATION_INIT;
  if (multicast_token_get_registration((multicast_token){id}, &one) < 0) Py_RETURN_NONE;
  return Py_BuildValue("(iKOz)", (int)one.priority, (unsigned long long)one.events,
                       one.is_paused ? Py_True : Py_False, one.label);
}

static PyObject *created(uint64_t id) {
  return id == 0 ? failed(multicast_create_error()) : PyLong_FromUnsignedLongLong(id);
}

static PyObject *lifetime_create(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  return created(multicast_lifetime_create().id);
}

static PyObject *broadcaster_create(PyObject *module, PyObject *is_default) {
  (void)module;
  return created((is_default == Py_True ? multicast_broadcaster_default()
                                        : multicast_broadcaster_create(NULL)).id);
}

static PyObject *broadcaster_multicast(PyObject *module, PyObject *args) {
  unsigned long long id;
  const char *name;
  (void)module;
  if (!PyArg_ParseTuple(args, "Ky", &id, &name)) return NULL;
  return created(multicast_broadcaster_multicast((multicast_broadcaster){id}, name).id);
}

/* A call has come into a queue; `context` is its number in _queue.py. */
static void wake(void *context) {
  if (atomic_load(&is_over)) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *result = PyObject_CallFunction(on_wake, "n", (Py_ssize_t)(intptr_t)context);
  if (result == NULL) PyErr_WriteUnraisable(on_wake);
  Py_XDECREF(result);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

static PyObject *queue_create(PyObject *module, PyObject *args) {
  multicast_queue_options how = MULTICAST_QUEUE_OPTIONS_INIT;
  Py_ssize_t capacity, number;
  (void)module;
  if (!PyArg_ParseTuple(args, "nIn", &capacity, &how.overflow, &number)) return NULL;
  how.capacity = (size_t)capacity;
  how.wake = wake;
  how.wake_context = (void *)(intptr_t)number;
  return created(multicast_queue_create(&how).id);
}

static PyObject *queue_run(PyObject *module, PyObject *args) {
  unsigned long long id;
  Py_ssize_t max;
  frame here = {0};
  (void)module;
  if (!PyArg_ParseTuple(args, "Kn", &id, &max) || !enter(&here)) return NULL;
  int64_t count = multicast_queue_run((multicast_queue){id}, max < 0 ? 0 : (size_t)max);
  if (!leave(&here)) return NULL;
  return count < 0 ? failed(count) : PyLong_FromLongLong(count);
}

static PyObject *queue_stats(PyObject *module, PyObject *argument) {
  HANDLE(id);
  multicast_queue_stats all = MULTICAST_QUEUE_STATS_INIT;
  multicast_status status = multicast_queue_get_stats((multicast_queue){id}, &all);
  if (status < 0) return failed(status);
  return Py_BuildValue("(KKKKKKKK)", all.pending, all.queued, all.delivered, all.refused, all.dropped,
                       all.cancelled, all.coalesced, all.highest);
}

/* ---- The module ------------------------------------------------------------------------------------------ */

static const frame *innermost(void) {
  const frame *here = current;
  while (here != NULL && here->token == NULL) here = here->outer;
  return here;
}

static PyObject *current_event(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  const frame *here = innermost();
  if (here == NULL) Py_RETURN_NONE;
  return PyLong_FromUnsignedLong(here->event);
}

static PyObject *current_token(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  const frame *here = innermost();
  PyObject *token = here != NULL ? (PyObject *)here->token : Py_None;
  Py_INCREF(token);
  return token;
}

static PyObject *version(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  return PyLong_FromUnsignedLong(multicast_version());
}

static PyObject *status_message(PyObject *module, PyObject *status) {
  (void)module;
  long long number = PyLong_AsLongLong(status);
  if (number == -1 && PyErr_Occurred()) return NULL;
  return PyUnicode_FromString(multicast_status_message(number));
}

static PyObject *setup(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long first_mark;
  if (!PyArg_ParseTuple(args, "O!O!OOOOOK", &PyType_Type, &token_type, &PyType_Type, &coroutine_type,
                        &fail, &group, &accepts, &on_coroutine, &on_wake, &first_mark))
    return NULL;
  mark = first_mark;
  Py_INCREF(args); /* all of them, for ever */
  Py_RETURN_NONE;
}

static PyObject *set_greenlet(PyObject *module, PyObject *function) {
  (void)module;
  Py_INCREF(function);
  get_greenlet = function;
  Py_RETURN_NONE;
}

/* At exit: no thread of C calls Python any more. */
static PyObject *finish(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  atomic_store(&is_over, 1);
  Py_RETURN_NONE;
}

#define METHOD(name, function, flags) {name, (PyCFunction)(void (*)(void))function, flags, NULL}

static PyMethodDef core_methods[] = {
    METHOD("invoke", core_invoke, METH_VARARGS | METH_KEYWORDS),
    METHOD("collect", core_collect, METH_VARARGS | METH_KEYWORDS),
    METHOD("_collect_awaitable", core_collect_awaitable, METH_VARARGS | METH_KEYWORDS),
    METHOD("_add", core_add, METH_VARARGS),
    METHOD("_tokens", core_tokens, METH_NOARGS),
    METHOD("_held", core_held, METH_NOARGS),
    METHOD("_open", core_open, METH_VARARGS),
    METHOD("_adopt", core_adopt, METH_VARARGS),
    METHOD("_share", core_share, METH_NOARGS),
    METHOD("_pause", core_pause, METH_O),
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef core_properties[] = {
    {"has_listeners", (getter)core_has_listeners, NULL,
     "False if an invocation would call nobody: about the cost of an attribute.", NULL},
    {"_handle", (getter)core_handle, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot core_slots[] = {
    {Py_tp_new, core_new},           {Py_tp_dealloc, core_dealloc},
    {Py_tp_traverse, core_traverse}, {Py_tp_finalize, core_finalize},
    {Py_tp_call, core_call},         {Py_sq_length, core_length},
    {Py_nb_bool, core_is_true},      {Py_tp_methods, core_methods},
    {Py_tp_getset, core_properties}, {0, NULL},
};
static PyMemberDef registration_members[] = {
    {"_id", T_ULONGLONG, offsetof(registration, token), READONLY, NULL},
    {"_function", T_OBJECT, offsetof(registration, function), READONLY, NULL},
    {"_target", T_OBJECT, offsetof(registration, target), READONLY, NULL},
    {"queue", T_OBJECT, offsetof(registration, queue), READONLY, "Where its calls wait, or None."},
    {"lifetime", T_OBJECT, offsetof(registration, lifetime), READONLY, "What ends it, or None."},
    {"on_end", T_OBJECT, offsetof(registration, on_end), 0,
     "A function that is called once, when it has ended and no call of it runs."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot registration_slots[] = {
    {Py_tp_dealloc, registration_dealloc}, {Py_tp_traverse, registration_traverse},
    {Py_tp_clear, registration_clear},     {Py_tp_members, registration_members},
    {0, NULL},
};
static PyType_Slot call_slots[] = {
    {Py_tp_dealloc, call_dealloc}, {Py_tp_traverse, call_traverse}, {0, NULL}};

#define FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC)
static PyType_Spec core_spec = {"multicast._core.Core", sizeof(core), 0, FLAGS | Py_TPFLAGS_BASETYPE,
                                core_slots};
static PyType_Spec registration_spec = {"multicast._core.Registration", sizeof(registration), 0,
                                        FLAGS | Py_TPFLAGS_BASETYPE, registration_slots};
static PyType_Spec call_spec = {"multicast._core.Call", sizeof(call_object), 0, FLAGS, call_slots};

static PyMethodDef functions[] = {
    {"find_equal", find_equal, METH_VARARGS, NULL},
    {"wait_ended", wait_ended, METH_VARARGS, NULL},
    {"end_token", end_token, METH_O, NULL},
    {"end_multicast", end_multicast, METH_O, NULL},
    {"end_lifetime", end_lifetime, METH_O, NULL},
    {"end_queue", end_queue, METH_O, NULL},
    {"end_broadcaster", end_broadcaster, METH_O, NULL},
    {"clear", clear, METH_O, NULL},
    {"is_valid", is_valid, METH_O, NULL},
    {"token_pause", token_pause, METH_O, NULL},
    {"token_resume", token_resume, METH_O, NULL},
    {"token_properties", token_properties, METH_O, NULL},
    {"lifetime_create", lifetime_create, METH_NOARGS, NULL},
    {"lifetime_count", lifetime_count, METH_O, NULL},
    {"queue_create", queue_create, METH_VARARGS, NULL},
    {"queue_run", queue_run, METH_VARARGS, NULL},
    {"queue_wait", queue_wait, METH_VARARGS, NULL},
    {"queue_clear", queue_clear, METH_O, NULL},
    {"queue_fd", queue_fd, METH_O, NULL},
    {"queue_stats", queue_stats, METH_O, NULL},
    {"broadcaster_create", broadcaster_create, METH_O, NULL},
    {"broadcaster_multicast", broadcaster_multicast, METH_VARARGS, NULL},
    {"current_event", current_event, METH_NOARGS, NULL},
    {"current_token", current_token, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {"status_message", status_message, METH_O, NULL},
    {"setup", setup, METH_VARARGS, NULL},
    {"set_greenlet", set_greenlet, METH_O, NULL},
    {"after_fork", after_fork, METH_O, NULL},
    {"finish", finish, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **out) {
  *out = (PyTypeObject *)PyType_FromSpec(spec);
  if (*out == NULL) return 0;
  Py_INCREF(*out);
  return PyModule_AddObject(module, name, (PyObject *)*out) == 0;
}

/* The library is one for the process, and so are the lists here: they belong to one interpreter. */
static int execute(PyObject *module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0 || core_type != NULL) {
    PyErr_SetString(PyExc_ImportError, "multicast works in the main interpreter only");
    return -1;
  }
  if (!add_type(module, "Core", &core_spec, &core_type) ||
      !add_type(module, "Registration", &registration_spec, &registration_type) ||
      !add_type(module, "Call", &call_spec, &call_type))
    return -1;
  /* Registered after the library's: its release functions run in the child while `is_forking`. */
  if (pthread_atfork(fork_begins, fork_is_over, NULL) != 0) return PyErr_NoMemory(), -1;
  return 0;
}

static PyModuleDef_Slot slots_of_module[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "multicast._core", NULL, 0, functions, slots_of_module, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
