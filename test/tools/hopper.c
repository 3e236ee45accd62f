/*
 * A process that is hard to end: it forks all the time, leaves its session and its group each time, lets its parent end
 * and heeds no signal that it may ignore. Ends by itself after ten seconds. The argument is a file that stays locked
 * while any of it lives.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    time_t end = time(NULL) + 10;
    int file = open(argc > 1 ? argv[1] : "/dev/null", O_CREAT | O_RDWR, 0600);
    if (file < 0 || flock(file, LOCK_EX) != 0)
        return 1;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    while (time(NULL) < end) {
        if (fork() > 0)
            _exit(0);
        setsid();
        usleep(400);
    }
    return 0;
}
