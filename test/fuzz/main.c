/*
 * Runs a fuzz target over kept inputs, without a fuzzer: TARGET FOLDER|FILE... It stands in for libFuzzer's main(), so
 * that the corpus is a test that any compiler builds; it never makes inputs of its own.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "input.h"

static unsigned run_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t size;
    uint8_t *exact;

    check(file);
    size = fread(data, 1, sizeof(data), file);
    check(feof(file));
    fclose(file);
    exact = malloc(size ? size : 1); /* so that a sanitizer sees a read past its end */
    check(exact);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static unsigned run_folder(const char *path) {
    struct dirent **entries;
    char file[1024];
    int count = scandir(path, &entries, NULL, alphasort);
    unsigned ran = 0;

    check(count >= 0);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            ran += run_file(file);
        free(entries[i]);
    }
    free(entries);
    return ran;
}

int main(int argc, char **argv) {
    unsigned ran = 0;
    struct stat info;

    for (int i = 1; i < argc; i++) {
        check(stat(argv[i], &info) == 0);
        ran += S_ISDIR(info.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
    }
    printf("%u inputs\n", ran);
    check(ran > 0);
    return 0;
}
