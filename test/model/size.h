/*
 * How large a world may be. The one that is explored whole is copied for each move; a walk has a single one, with all
 * that a lease may meet: it is built from the same files with MODEL_WALK.
 */
#ifndef MODEL_SIZE_H
#define MODEL_SIZE_H

#ifdef MODEL_WALK
enum { CLIENTS = 3, NODES = 5, ATTEMPTS = 60, QUEUE = 64, STRAYS = 250, GRANTS = 200, MOVES = 4000 };
#else
enum { CLIENTS = 2, NODES = 3, ATTEMPTS = 3, QUEUE = 2 * ATTEMPTS, STRAYS = 6, GRANTS = 4, MOVES = 128 };
#endif

enum { LINE = CLIENTS * ATTEMPTS }; /* who waits on a server at most */

#endif
