/* Include it in a program that uses libzmq without src/daemon/socket.c. */
#ifndef ZMQ_RACES_H
#define ZMQ_RACES_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ /* as gcc calls it */
#endif
#endif
#ifdef __SANITIZE_THREAD__
/* As in src/daemon/socket.c: libzmq is not built with the sanitizer. */
__attribute__((weak)) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\n";
}
#endif

#endif
