/* The calls that -fsanitize=thread puts into the kernels, in place of the library of the sanitizer. */
#include <stddef.h>

#include "race_detector.h"

#define FROM __builtin_return_address(0)

#define OF_SIZE(BYTES)                                                                                             \
    void __tsan_read##BYTES(void *at);                                                                             \
    void __tsan_write##BYTES(void *at);                                                                            \
    void __tsan_volatile_read##BYTES(void *at);                                                                    \
    void __tsan_volatile_write##BYTES(void *at);                                                                   \
    void __tsan_unaligned_read##BYTES(void *at);                                                                   \
    void __tsan_unaligned_write##BYTES(void *at);                                                                  \
    void __tsan_read##BYTES(void *at)                                                                              \
    {                                                                                                              \
        race_load(at, BYTES, 0, FROM);                                                                             \
    }                                                                                                              \
    void __tsan_write##BYTES(void *at)                                                                             \
    {                                                                                                              \
        race_store(at, BYTES, 0, FROM);                                                                            \
    }                                                                                                              \
    void __tsan_volatile_read##BYTES(void *at)                                                                     \
    {                                                                                                              \
        race_load(at, BYTES, 1, FROM);                                                                             \
    }                                                                                                              \
    void __tsan_volatile_write##BYTES(void *at)                                                                    \
    {                                                                                                              \
        race_store(at, BYTES, 1, FROM);                                                                            \
    }                                                                                                              \
    void __tsan_unaligned_read##BYTES(void *at)                                                                    \
    {                                                                                                              \
        race_load(at, BYTES, 0, FROM);                                                                             \
    }                                                                                                              \
    void __tsan_unaligned_write##BYTES(void *at)                                                                   \
    {                                                                                                              \
        race_store(at, BYTES, 0, FROM);                                                                            \
    }

OF_SIZE(1)
OF_SIZE(2)
OF_SIZE(4)
OF_SIZE(8)
OF_SIZE(16)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);
void __tsan_vptr_update(void **at, void *value);

void __tsan_init(void) {}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void) {}

void __tsan_read_range(void *at, size_t bytes)
{
    race_load(at, bytes, 0, FROM);
}

void __tsan_write_range(void *at, size_t bytes)
{
    race_store(at, bytes, 0, FROM);
}

void __tsan_vptr_update(void **at, void *value)
{
    (void)value;
    race_store(at, sizeof(*at), 0, FROM);
}
