/* The standard output. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "exits.h"
#include "output.h"
#include "say.h"

static bool output_closed; /* from the beginning */
static bool output_failed; /* that was said */

void output_begin(void) {
    int fd;
    output_closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int output_end(int exit) {
    if (output_failed || (fflush(stdout) == 0 && !ferror(stdout)))
        return exit;
    output_failed = true;
    return say_error(EXIT_TROUBLE, "cannot write to the standard output");
}

int output_arrived(void) {
    if (!output_closed)
        return output_end(0);
    output_failed = true;
    return say_error(EXIT_TROUBLE, "the standard output is closed");
}
