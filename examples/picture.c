/*
 * The picture of a timeline, as SVG: a lane for the lock, one for each worker, an axis of seconds and a legend. Its
 * colours follow the screen, light or dark; shapes tell the same without colours. It only draws what it is given.
 */
#include "picture.h"

static const double left_margin = 92, right_margin = 24, top_margin = 104;
static const double lane_height = 28;
static const double gap = 12;               /* between the lock's lane and the workers' */
static const double min_width = 760;        /* of the lanes; room for the legend */
static const double max_width = 20000;      /* of the lanes */
static const double width_of_a_second = 50; /* if that is neither too much nor too little */

struct picture {
    FILE *out;
    int workers;
    int64_t start;
    double seconds;
    double width; /* of the lanes */
};

static const char style[] = "<style>\n"
                            "  text { font: 13px system-ui, sans-serif; fill: #1f2328 }\n"
                            "  .title { font-size: 16px; font-weight: 600 }\n"
                            "  .name { text-anchor: end }\n"
                            "  .tick, .number { text-anchor: middle }\n"
                            "  .tick { fill: #59636e }\n"
                            "  .number { fill: #ffffff; font-weight: 600 }\n"
                            "  svg { background: #ffffff }\n"
                            "  .page { fill: #ffffff }\n"
                            "  .lane { fill: #f1f3f5 }\n"
                            "  .grid { stroke: #d1d9e0 }\n"
                            "  .wait { fill: #d4a72c }\n"
                            "  .vain { fill: none; stroke: #9a6700; stroke-width: 1.5; stroke-dasharray: 5 2 }\n"
                            "  .hold, .held { fill: #0969da }\n"
                            "  .stall { fill: url(#stripes) }\n"
                            "  .stripe { stroke: #ffffff; stroke-width: 2 }\n"
                            "  .late { stroke: #d1242f; stroke-dasharray: 2 4 }\n"
                            "  .lost, .refused { fill: none; stroke: #d1242f; stroke-width: 3 }\n"
                            "  .twice { fill: #d1242f }\n"
                            "  @media (prefers-color-scheme: dark) {\n"
                            "    text { fill: #e6edf3 }\n"
                            "    .tick { fill: #9198a1 }\n"
                            "    .number { fill: #0d1117 }\n"
                            "    svg { background: #0d1117 }\n"
                            "    .page { fill: #0d1117 }\n"
                            "    .lane { fill: #1b222c }\n"
                            "    .grid { stroke: #30363d }\n"
                            "    .wait { fill: #bb8009 }\n"
                            "    .vain { stroke: #d29922 }\n"
                            "    .hold, .held { fill: #58a6ff }\n"
                            "    .stripe { stroke: #0d1117 }\n"
                            "    .late, .lost, .refused { stroke: #ff7b72 }\n"
                            "    .twice { fill: #ff7b72 }\n"
                            "  }\n"
                            "</style>\n"
                            "<defs><pattern id=\"stripes\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
                            "patternTransform=\"rotate(45)\"><path class=\"stripe\" d=\"M1 0V7\"/></pattern></defs>\n";

static double x_of(const struct picture *picture, int64_t at) {
    return left_margin + (double)(at - picture->start) / 1e6 / picture->seconds * picture->width;
}

/* The middle of the lane of a worker, or of the lock for 0. */
static double y_of(int worker) {
    return top_margin + lane_height * (worker + 0.5) + (worker > 0 ? gap : 0);
}

/* The end of the lanes. */
static double bottom(const struct picture *picture) {
    return y_of(picture->workers) + lane_height / 2.0;
}

/* --- Marks -------------------------------------------------------------------------------------------------------- */

/* A bar in the middle of a lane; it is left open for a title. */
static void bar(const struct picture *picture, const char *class, double left, double right, double y, double height) {
    double width = right - left > 1 ? right - left : 1; /* so that it is seen */
    fprintf(picture->out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"2\">", class,
            left, y - height / 2, width, height);
}

static void end_bar(const struct picture *picture) {
    fputs("</rect>\n", picture->out);
}

static void cross(const struct picture *picture, double x, double y) {
    fprintf(picture->out, "<path class=\"lost\" d=\"M%.2f %.1fl12 12m0 -12l-12 12\"/>\n", x - 6, y - 6);
}

static void ring(const struct picture *picture, double x, double y) {
    fprintf(picture->out, "<circle class=\"refused\" cx=\"%.2f\" cy=\"%.1f\" r=\"5\"/>\n", x, y);
}

static void label(const struct picture *picture, const char *class, double x, double y, const char *text) {
    fprintf(picture->out, "<text class=\"%s\" x=\"%.2f\" y=\"%.1f\">%s</text>\n", class, x, y, text);
}

/* --- The parts of the picture ------------------------------------------------------------------------------------- */

static void draw_lanes(const struct picture *picture) {
    for (int worker = 0; worker <= picture->workers; worker++) {
        char name[24] = "the lock";
        if (worker > 0)
            snprintf(name, sizeof name, "worker-%d", worker);
        bar(picture, "lane", left_margin, left_margin + picture->width, y_of(worker), lane_height - 4);
        end_bar(picture);
        label(picture, "name", left_margin - 10, y_of(worker) + 4.5, name);
    }
}

/* Lines at whole seconds, as many as there is room for. */
static void draw_axis(const struct picture *picture) {
    static const int steps[] = {1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 21600};
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && steps[i] * picture->width / picture->seconds < 45)
        i++;
    for (int second = 0; second <= picture->seconds; second += steps[i]) {
        char text[24];
        double x = left_margin + second / picture->seconds * picture->width;
        snprintf(text, sizeof text, "%d s", second);
        fprintf(picture->out, "<path class=\"grid\" d=\"M%.2f %.0fV%.1f\"/>\n", x, top_margin - 4, bottom(picture) + 4);
        label(picture, "tick", x, bottom(picture) + 20, text);
    }
}

static void draw_legend(const struct picture *picture) {
    double y = 64, text = y + 4.5;
    label(picture, "title", 20, 32, "Who held the lock, and who waited");
    bar(picture, "wait", 20, 46, y, 6);
    end_bar(picture);
    label(picture, "legend", 54, text, "waits");
    bar(picture, "vain", 110, 136, y, 8);
    end_bar(picture);
    label(picture, "legend", 144, text, "waits in vain");
    bar(picture, "hold", 248, 274, y, 18);
    end_bar(picture);
    label(picture, "legend", 282, text, "holds");
    bar(picture, "hold", 340, 366, y, 18);
    end_bar(picture);
    bar(picture, "stall", 340, 366, y, 18);
    end_bar(picture);
    label(picture, "legend", 374, text, "holds, but stalls");
    cross(picture, 512, y);
    label(picture, "legend", 526, text, "loses its lease");
    ring(picture, 646, y);
    label(picture, "legend", 660, text, "its late release is refused");
}

/* Of what should never be there. */
static void draw_twice_legend(const struct picture *picture) {
    bar(picture, "twice", 340, 366, 28, 24);
    end_bar(picture);
    label(picture, "legend", 374, 32.5, "HELD TWICE AT ONCE");
}

static void draw_wait(const struct picture *picture, const struct turn *turn, double y) {
    int64_t until = turn->got ? turn->got : turn->end;
    bar(picture, turn->got ? "wait" : "vain", x_of(picture, turn->asked), x_of(picture, until), y, turn->got ? 6 : 8);
    fprintf(picture->out, "<title>worker-%d waited %.3f s%s</title>", turn->worker, (double)(until - turn->asked) / 1e6,
            turn->got ? "" : " in vain");
    end_bar(picture);
}

static void draw_hold(const struct picture *picture, const struct turn *turn, double y) {
    double left = x_of(picture, turn->got), right = x_of(picture, turn->end);
    bar(picture, "hold", left, right, y, 18);
    fprintf(picture->out, "<title>worker-%d held %.3f s, fence %llu%s</title>", turn->worker,
            (double)(turn->end - turn->got) / 1e6, (unsigned long long)turn->fence, turn->lost ? ", and lost it" : "");
    end_bar(picture);
    if (turn->stalled && turn->stalled < turn->end) {
        bar(picture, "stall", x_of(picture, turn->stalled), right, y, 18);
        end_bar(picture);
    }
    if (turn->refused) {
        double late = x_of(picture, turn->refused);
        fprintf(picture->out, "<path class=\"late\" d=\"M%.2f %.1fH%.2f\"/>\n", right, y, late);
        ring(picture, late, y);
    }
    if (turn->lost)
        cross(picture, right, y);
}

/* All holds in one lane, each with its worker's number where there is room; what is held twice stands out. */
static void draw_lock(const struct picture *picture, const struct timeline *timeline) {
    const struct turn *last = NULL;
    bool twice = false;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct turn *turn = &timeline->turns[i];
        if (!turn->got)
            continue;
        double left = x_of(picture, turn->got), right = x_of(picture, turn->end);
        char number[24];
        snprintf(number, sizeof number, "%d", turn->worker);
        bar(picture, "held", left, right, y_of(0), 18);
        end_bar(picture);
        if (right - left > 16)
            label(picture, "number", (left + right) / 2, y_of(0) + 4.5, number);
        if (last && turn->got < last->end) {
            if (!twice)
                draw_twice_legend(picture);
            twice = true;
            bar(picture, "twice", left, x_of(picture, turn->end < last->end ? turn->end : last->end), y_of(0), 24);
            fputs("<title>held twice at once</title>", picture->out);
            end_bar(picture);
        }
        if (!last || turn->end > last->end)
            last = turn;
    }
}

void picture_draw(const struct timeline *timeline, int workers, int64_t start, int64_t end, FILE *out) {
    struct picture picture = {.out = out, .workers = workers, .start = start, .seconds = (double)(end - start) / 1e6};
    if (picture.seconds < 1)
        picture.seconds = 1;
    picture.width = picture.seconds * width_of_a_second;
    if (picture.width < min_width)
        picture.width = min_width;
    if (picture.width > max_width)
        picture.width = max_width;

    double width = left_margin + picture.width + right_margin, height = bottom(&picture) + 40;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "role=\"img\">\n<title>Who held the lock, and who waited</title>\n",
            width, height, width, height);
    fputs(style, out);
    fputs("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", out);
    draw_legend(&picture);
    draw_lanes(&picture);
    draw_axis(&picture);
    draw_lock(&picture, timeline);
    for (size_t i = 0; i < timeline->count; i++) {
        const struct turn *turn = &timeline->turns[i];
        draw_wait(&picture, turn, y_of(turn->worker));
        if (turn->got)
            draw_hold(&picture, turn, y_of(turn->worker));
    }
    fputs("</svg>\n", out);
}
