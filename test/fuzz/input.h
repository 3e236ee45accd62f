/*
 * The bytes that a fuzz target is given, taken from the front; and the check that ends the process when a promise is
 * broken, since that is what a fuzzer looks for. An input that is used up goes on with zeros.
 */
#ifndef EVLOCK_FUZZ_INPUT_H
#define EVLOCK_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libFuzzer, or main.c in its place, calls for each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(promise)                                                                                                 \
    do {                                                                                                               \
        if (!(promise)) {                                                                                              \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise);                                      \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static inline uint8_t take_byte(struct input *input) {
    return input->at < input->end ? *input->at++ : 0;
}

/* A number below `most`. */
static inline unsigned take_below(struct input *input, unsigned most) {
    return take_byte(input) % most;
}

/* So many bytes, or as many as are left; they stay in the input. */
static inline const uint8_t *take_bytes(struct input *input, size_t *len) {
    const uint8_t *bytes = input->at;

    if (*len > (size_t)(input->end - input->at))
        *len = (size_t)(input->end - input->at);
    input->at += *len;
    return bytes;
}

/* Half of them are edges of what options may be, since hardly any others are ever found. */
static inline int64_t take_number(struct input *input) {
    static const int64_t edges[] = {0,
                                    1,
                                    2,
                                    3,
                                    99,
                                    100,
                                    101,
                                    1000,
                                    30000,
                                    60000,
                                    INT32_MAX,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MIN + 1,
                                    -1,
                                    -2,
                                    INT32_MIN,
                                    4294967296,
                                    316224000000,
                                    316224000001,
                                    INT64_MAX / 1000,
                                    INT64_MAX / 1000 + 1};
    uint8_t which = take_byte(input);
    uint64_t number = 0;

    if (which % 2)
        return edges[which / 2 % (sizeof(edges) / sizeof(edges[0]))];
    for (int i = 0; i < which / 2 % 9; i++)
        number = number << 8 | take_byte(input);
    return (int64_t)number;
}

#endif
