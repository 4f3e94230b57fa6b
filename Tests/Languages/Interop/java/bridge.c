/* The bridge between Java and libmulticast. The bridge calls functions by name, and implements the
 * C side of delegates written in Java.
 *
 * Handles, statuses and addresses are passed as 64-bit integers, which the C compiler puts into the
 * registers where the library expects them. A delegate that is passed by value is replaced with its
 * two addresses. */
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static JavaVM *vm;
static void *library;
static jmethodID on_event, on_release;
static pthread_key_t attached; /* its destructor detaches threads that the bridge has attached */

static void detach(void *unused) {
  (void)unused;
  (*vm)->DetachCurrentThread(vm);
}

/* Returns the JNI environment of this thread, which may be a queue's own thread. */
static JNIEnv *environment(void) {
  JNIEnv *env = NULL;
  if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_10) != JNI_OK) {
    (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&env, NULL);
    pthread_setspecific(attached, vm);
  }
  return env;
}

/* Prints and clears an exception, because a Java exception must not pass through the library. */
static void report_exception(JNIEnv *env) {
  if ((*env)->ExceptionCheck(env)) (*env)->ExceptionDescribe(env);
  (*env)->ExceptionClear(env);
}

/* The function of every delegate. The context is a global reference to a Listener. */
static void event_trampoline(void *context, uint32_t event, const void *payload, size_t size) {
  JNIEnv *env = environment();
  jbyteArray bytes = (*env)->NewByteArray(env, (jsize)size);
  if (bytes != NULL) {
    (*env)->SetByteArrayRegion(env, bytes, 0, (jsize)size, payload);
    (*env)->CallVoidMethod(env, context, on_event, (jint)event, bytes);
  }
  report_exception(env);
  (*env)->DeleteLocalRef(env, bytes); /* not done automatically on a thread of the library */
}

static void release_trampoline(void *context) {
  JNIEnv *env = environment();
  (*env)->CallVoidMethod(env, context, on_release);
  report_exception(env);
  (*env)->DeleteGlobalRef(env, context);
}

JNIEXPORT jboolean JNICALL Java_Interop_open(JNIEnv *env, jclass type, jstring path) {
  (void)type;
  jclass listener = (*env)->FindClass(env, "Interop$Listener");
  const char *chars = (*env)->GetStringUTFChars(env, path, NULL);
  library = dlopen(chars, RTLD_NOW);
  (*env)->ReleaseStringUTFChars(env, path, chars);
  on_event = (*env)->GetMethodID(env, listener, "onEvent", "(I[B)V");
  on_release = (*env)->GetMethodID(env, listener, "onRelease", "()V");
  (*env)->GetJavaVM(env, &vm);
  return library != NULL && pthread_key_create(&attached, detach) == 0;
}

JNIEXPORT jlong JNICALL Java_Interop_call(JNIEnv *env, jclass type, jstring name,
                                          jlongArray array) {
  (void)type;
  jlong a[6] = {0};
  const char *chars = (*env)->GetStringUTFChars(env, name, NULL);
  void *symbol = dlsym(library, chars);
  (*env)->ReleaseStringUTFChars(env, name, chars);
  (*env)->GetLongArrayRegion(env, array, 0, (*env)->GetArrayLength(env, array), a);
  if ((*env)->ExceptionCheck(env)) return 0; /* more than six arguments */
  if (symbol == NULL) {
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/UnsatisfiedLinkError"), dlerror());
    return 0;
  }
  return ((jlong(*)(jlong, jlong, jlong, jlong, jlong, jlong))symbol)(a[0], a[1], a[2], a[3], a[4],
                                                                      a[5]);
}

JNIEXPORT jlong JNICALL Java_Interop_eventFunction(JNIEnv *env, jclass type) {
  (void)env, (void)type;
  return (jlong)(intptr_t)event_trampoline;
}

JNIEXPORT jlong JNICALL Java_Interop_releaseFunction(JNIEnv *env, jclass type) {
  (void)env, (void)type;
  return (jlong)(intptr_t)release_trampoline;
}

JNIEXPORT jlong JNICALL Java_Interop_reference(JNIEnv *env, jclass type, jobject listener) {
  (void)type;
  return (jlong)(intptr_t)(*env)->NewGlobalRef(env, listener);
}

JNIEXPORT jlong JNICALL Java_Interop_address(JNIEnv *env, jclass type, jobject buffer) {
  (void)type;
  return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}

JNIEXPORT jstring JNICALL Java_Interop_text(JNIEnv *env, jclass type, jlong address) {
  (void)type;
  return (*env)->NewStringUTF(env, (const char *)(intptr_t)address);
}
