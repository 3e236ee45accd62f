/*
 * A command that says when it lived: it adds a record to a file of records, and writes the time into it as long as it
 * lives. A record is two numbers of 64 bits, the first and the last moment, in microseconds of CLOCK_BOOTTIME.
 * Arguments: the file, whose first record begins with how many were added, and how many milliseconds it lives.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct record {
    _Atomic int64_t first, last;
};

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    int64_t begin = now();
    int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0)
        return 1;
    struct record *records = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (records == MAP_FAILED)
        return 1;
    int64_t number = atomic_fetch_add(&records[0].first, 1) + 1;
    if (number >= file.st_size / (int64_t)sizeof *records)
        return 1;
    atomic_store(&records[number].first, begin);
    do {
        atomic_store(&records[number].last, now());
        usleep(100);
    } while (now() - begin < atoll(argv[2]) * 1000);
    return 0;
}
