/*
 * The standard output, as those who print results use it: whether what was printed has arrived. What it owns are the
 * standard descriptors of a process that was started without one.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

/**
 * Opens /dev/null for what is closed of the standard descriptors. Else a connection may get the number of the standard
 * error, and have evlock's words written to it.
 */
void output_begin(void);

/** Returns `exit`, or EXIT_TROUBLE if not all that was printed has arrived, which is said once. */
int output_end(int exit);

/**
 * For who holds something for whoever reads what was printed. Returns 0, or EXIT_TROUBLE as above, also if the standard
 * output was closed from the beginning.
 */
int output_arrived(void);

#endif
