/* A lease's token on its way from one run of evlock to the next. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exits.h"
#include "say.h"
#include "token.h"

struct token_options token_options = {.fd = -1};

static int token_failed(const char *what) {
    const char *file = token_options.file;
    if (file)
        return say_error(EXIT_TROUBLE, "cannot %s %s: %s", what, file, strerror(errno));
    return say_error(EXIT_TROUBLE, "cannot %s descriptor %d: %s", what, (int)token_options.fd, strerror(errno));
}

static int token_get_fd(int flags, int *ret_fd) {
    if ((token_options.file != NULL) == (token_options.fd >= 0))
        return say_error(EXIT_TROUBLE, "where is the token? Give --token-file or --token-fd, and one of them");
    *ret_fd = token_options.file ? open(token_options.file, flags | O_CLOEXEC, 0600) : (int)token_options.fd;
    return *ret_fd >= 0 ? 0 : token_failed("open");
}

/* Byte by byte, since what stands behind the line is not ours. */
int token_read(struct token *ret_token) {
    int fd = -1, exit = token_get_fd(O_RDONLY, &fd);
    char byte = '\0';
    *ret_token = (struct token){.length = 0};
    while (!exit && byte != '\n') {
        ssize_t got = read(fd, &byte, 1);
        if (got < 0 && errno != EINTR)
            exit = token_failed("read");
        if (got == 0 || ret_token->length > EVLOCK_TOKEN_MAX)
            break;
        if (got > 0 && byte != '\n')
            ret_token->bytes[ret_token->length++] = byte;
    }
    if (token_options.file && fd >= 0)
        close(fd);
    if (!exit && (ret_token->length == 0 || ret_token->length > EVLOCK_TOKEN_MAX))
        exit = say_error(EXIT_TROUBLE, "what is there is no token: a line of 1 to %d bytes", EVLOCK_TOKEN_MAX);
    return exit;
}

/* What a file had stays there until there is a token to take its place. */
int token_open(int *ret_fd) {
    signal(SIGPIPE, SIG_IGN);
    int exit = token_get_fd(O_WRONLY | O_CREAT, ret_fd);
    if (!exit && fcntl(*ret_fd, F_GETFL) < 0)
        exit = token_failed("use");
    return exit;
}

int token_write(int fd, const void *token, size_t length) {
    char line[EVLOCK_TOKEN_MAX + 1];
    struct stat file;
    memcpy(line, token, length);
    line[length++] = '\n';
    if (token_options.file && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && ftruncate(fd, 0) != 0)
        return token_failed("write to");
    for (size_t done = 0; done < length;) {
        ssize_t written = write(fd, line + done, length - done);
        if (written < 0 && errno != EINTR)
            return token_failed("write to");
        done += written > 0 ? (size_t)written : 0;
    }
    explicit_bzero(line, sizeof line);
    return 0;
}
