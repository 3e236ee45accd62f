/*
 * A lease's token on its way from one run of evlock to the next: by a file or a descriptor, and never by an argument,
 * which everybody can read. It owns the values of the two options.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include <evlock/evlock.h>

#include "options.h"

struct token_options {
    const char *file;
    int64_t fd; /**< -1: none */
};

extern struct token_options token_options;

/** The rows of the two options. `verb`: what is done with the token there, as "written to". */
#define TOKEN_ROWS(verb)                                                                                               \
    {"token-file", 0, OPTION_TEXT, &token_options.file, "FILE", "the token is " verb " this file", 0, 0}, {            \
        "token-fd", 0, OPTION_NUMBER, &token_options.fd, "N", "the token is " verb " descriptor N", 0, INT32_MAX       \
    }

struct token {
    char bytes[EVLOCK_TOKEN_MAX + 2];
    size_t length;
};

/** Reads the token that the options name: the first line. Returns 0, or the exit status of an error that was said. */
int token_read(struct token *ret_token);

/**
 * Opens what the token is to be written to, before there is one. A file that is made is its owner's alone to read. A
 * reader that is gone raises no signal from then on. Returns 0, or the exit status of an error that was said.
 */
int token_open(int *ret_fd);

/** Writes the token and a newline, in the place of what a file had. Returns 0, or the exit status as above. */
int token_write(int fd, const void *token, size_t length);

#endif
