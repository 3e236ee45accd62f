/* Signals: their names, and those that the event loop reports. It changes no signal that it was not asked to catch. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <event2/event.h>

/** The number of a signal that is called so: "TERM", "SIGTERM", "15"; 0 if there is none. */
int signals_number(const char *text);

/** Its name without "SIG"; "?" for a number that has none here. */
const char *signals_name(int number);

/** What happens when a signal comes, from the loop. */
typedef void (*signals_cb)(int number, void *arg);

enum { SIGNALS_MOST = 16 };

/** Signals that are caught. Begin with all zero. */
struct signals {
    struct event *events[SIGNALS_MOST];
    size_t count;
    signals_cb cb;
    void *arg;
};

/**
 * Catches the signals of a list that ends with 0: `cb` is called for each that comes. Those that were ignored when
 * evlock began, as nohup has it, stay ignored. Returns 0, or -1 if the loop refuses.
 */
int signals_catch(struct signals *signals, struct event_base *base, const int *numbers, signals_cb cb, void *arg);

/**
 * From now on, to write to a pipe that nobody reads fails, and does not end evlock. What evlock runs finds the signal
 * as it was.
 */
void signals_outlive_pipes(void);

/** Catches them no longer. */
void signals_end(struct signals *signals);

#endif
