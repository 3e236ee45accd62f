/*
 * Runs a fuzz target over kept inputs, without a fuzzer: TARGET FILE... A file whose name ends in .hex has many, each a
 * line of hexadecimal digits, perhaps behind a name; any other is one as it is. It stands in for libFuzzer's main(), so
 * that the corpus is a test that any compiler builds; it never makes inputs of its own.
 */
#include "input.h"

static uint8_t data[1 << 20];

static void run_input(size_t size) {
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees a read past its end */

    check(exact);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static size_t read_digits(const char *digits) {
    size_t size = 0;

    check(strlen(digits) % 2 == 0 && strlen(digits) / 2 <= sizeof(data));
    for (; *digits; digits += 2)
        check(sscanf(digits, "%2hhx", &data[size++]) == 1);
    return size;
}

static unsigned run_lines(FILE *file) {
    char *line = NULL;
    size_t room = 0;
    unsigned ran = 0;

    for (; getline(&line, &room, file) >= 0; ran++) {
        char *name_end = strchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        run_input(read_digits(name_end ? name_end + 1 : line));
    }
    free(line);
    return ran;
}

static unsigned run_file(const char *path) {
    const char *ending = strrchr(path, '.');
    FILE *file = fopen(path, "rb");
    unsigned ran = 1;

    check(file);
    if (ending && strcmp(ending, ".hex") == 0)
        ran = run_lines(file);
    else
        run_input(fread(data, 1, sizeof(data), file));
    check(feof(file));
    fclose(file);
    return ran;
}

int main(int argc, char **argv) {
    unsigned ran = 0;

    for (int i = 1; i < argc; i++)
        ran += run_file(argv[i]);
    printf("%u inputs\n", ran);
    check(ran > 0);
    return 0;
}
