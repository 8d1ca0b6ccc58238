/* What the programs of this folder's neighbour share: delays of known length, and what they must lead to. */
#ifndef KNOWN_H
#define KNOWN_H

#include <time.h>

/* Work that takes so long wherever it runs: asleep, so that ranks that share a core do not disturb each other. */
static inline void work(double milliseconds)
{
    struct timespec span = {(time_t)(milliseconds / 1e3), (long)(milliseconds * 1e6) % 1000000000L};
    nanosleep(&span, NULL);
}

/*
 * The calling rank says what the delays in the program's own text cost it: so many milliseconds of the metrics (names
 * joined by '+', the sum counts), on all call paths that contain the regions of `callpath` (joined by '/') one after
 * the other, because of rank `cause` (of MPI_COMM_WORLD; -1 if there is no single one). Goes into expected.json.
 */
void expect(const char *metrics, const char *callpath, double milliseconds, int cause);

#endif
