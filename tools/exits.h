/* The exit statuses of the command. What is not here is the status of a command that evlock ran, or 128 + a signal. */
#ifndef EXITS_H
#define EXITS_H

enum exits {
    EXIT_OK = 0,
    EXIT_NOT_HAD = 1,     /**< the lock was not had; -E gives another number */
    EXIT_LOST = 124,      /**< the lease was lost, and what ran under it was ended */
    EXIT_TROUBLE = 125,   /**< evlock itself failed: usage, server, system */
    EXIT_NOT_RUN = 126,   /**< the command is there, and cannot be run */
    EXIT_NOT_FOUND = 127, /**< the command is not there */
    EXIT_SIGNAL = 128,    /**< plus the number of the signal */
};

#endif
