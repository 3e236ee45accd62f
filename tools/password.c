/* The password: from a file, a descriptor or the environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exits.h"
#include "password.h"
#include "say.h"

static char password_read_text[4096];

void password_wipe(void) {
    explicit_bzero(password_read_text, sizeof password_read_text);
}

/* Byte by byte, since what stands behind the line is not ours. */
static int password_read(int fd) {
    size_t length = 0;
    ssize_t got;
    char byte = 0;
    while ((got = read(fd, &byte, 1)) != 0 && byte != '\n') {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return say_error(EXIT_TROUBLE, "--password-fd %d: %s", fd, strerror(errno));
        if (length == sizeof password_read_text - 1 || byte == '\0')
            return say_error(EXIT_TROUBLE, "--password-fd %d: what it has is no password", fd);
        password_read_text[length++] = byte;
    }
    password_read_text[length] = '\0';
    if (length == 0)
        return say_error(EXIT_TROUBLE, "--password-fd %d: there is no password", fd);
    if (fd > STDERR_FILENO)
        close(fd);
    return 0;
}

int password_find(const struct options *options, struct password *ret_password) {
    *ret_password = (struct password){.file = options->password_file};
    if (options->password_fd >= 0) {
        ret_password->text = password_read_text;
        return password_read((int)options->password_fd);
    }
    const char *file = getenv("EVLOCK_PASSWORD_FILE"), *text = getenv("EVLOCK_PASSWORD");
    if (!ret_password->file && file && *file)
        ret_password->file = file;
    else if (!ret_password->file && text && *text)
        ret_password->text = text;
    return 0;
}
