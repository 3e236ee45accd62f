/*
 * What evlock says to people: lines on the standard error, each by one write, that begin with "evlock: ". It never
 * writes to the standard output, which is the results'.
 */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>

/** How much is said. */
enum say_level {
    SAY_ERRORS = 0, /**< -q: why it did not work */
    SAY_NOTES = 1,  /**< also what is worth knowing, such as a lease at risk; the beginning */
    SAY_STEPS = 2,  /**< -v: each step */
    SAY_ALL = 3,    /**< -vv: all that the library logs */
};

/** From now on, only lines of this level and below are said. */
void say_up_to(enum say_level level);

/** Whether a line of this level is said. */
bool says(enum say_level level);

/** Says a line, without its newline. */
__attribute__((format(printf, 2, 3))) void say(enum say_level level, const char *format, ...);

/** Says an error, and returns `exit`: return say_error(EXIT_TROUBLE, "..."). */
__attribute__((format(printf, 2, 3))) int say_error(int exit, const char *format, ...);

/**
 * Says a status of the library as an error: "WHAT: its words (the details)". Call it before anything else of evlock is
 * called. Returns EXIT_TROUBLE.
 */
int say_status(const char *what, int status);

/**
 * Shows a line of progress, in the place of the one before, if the standard error is a terminal and notes are said. The
 * next line that is said, or NULL, takes it away.
 */
void say_progress(const char *line);

/** Whether a line of progress would be seen. */
bool say_shows_progress(void);

#endif
