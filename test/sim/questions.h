/*
 * Questions: what queries tell, against what the servers had. While a query is open, everything that each node has in
 * the meantime is noted; the answer is right if the nodes can have said it, each at some moment of that time. What is
 * told of the lock and its holder must fit together.
 */
#ifndef EVLOCK_SIM_QUESTIONS_H
#define EVLOCK_SIM_QUESTIONS_H

#include "judge.h"

struct questions;

struct questions *questions_new(struct world *world);
void questions_free(struct questions *questions);

/* A query was accepted. */
void questions_open(struct questions *questions, struct promise *promise, unsigned what);
/* It is told. */
void questions_close(struct questions *questions, struct promise *promise, int status, const evlock_answer *answer);

/* Something may have changed, or is about to, on this node; NULL: on all. */
void questions_look(struct questions *questions, struct node *node);

#endif
