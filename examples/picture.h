/* The picture of a timeline, as SVG, for light and dark screens. */
#ifndef PICTURE_H
#define PICTURE_H

#include "timeline.h"

/** Draws the timeline of workers 1 to `workers` from `start` to `end` on `out`. The turns are sorted by `got`. */
void picture_draw(const struct timeline *timeline, int workers, int64_t start, int64_t end, FILE *out);

#endif
