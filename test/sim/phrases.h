/*
 * Commands drawn at random, valid and invalid, over a few keys that take every type. Times to live are all far from
 * each other, so that it does not matter when exactly a command is run.
 */
#ifndef EVLOCK_SIM_PHRASES_H
#define EVLOCK_SIM_PHRASES_H

#include "pair.h"

#define PHRASE_WORDS 24

struct phrase {
    int argc;
    const char *argv[PHRASE_WORDS];
    char room[2048]; /* for words that are made */
    size_t used;
    enum likeness likeness;
};

struct phrases {
    struct pair *pair;
    uint64_t times;
};

/* A command for a connection that does anything but listen. */
void phrase_draw(struct phrases *phrases, struct phrase *phrase);
/* A command for a connection that listens. */
void phrase_draw_listening(struct phrases *phrases, struct phrase *phrase);

#endif
