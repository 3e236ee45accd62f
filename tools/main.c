/* evlock, the command: finds the subcommand, reads its options, and runs it. What it does is in the subcommand's file.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "completion.h"
#include "exits.h"
#include "output.h"
#include "say.h"

static const char about[] = "Usage: evlock COMMAND [OPTION...] [OPERAND...]\n"
                            "Locks in Redis or Valkey, for commands and scripts.\n\n";

static const char hints[] =
    "\nevlock help COMMAND says more of one. evlock completion bash, or zsh, prints what that shell needs.\n"
    "The server is given by --url, or by EVLOCK_URL.\n"
    "Exit statuses: 0 done; 1 not had; 124 lost; 125 trouble of evlock; 126, 127 a command that cannot be run.\n";

static const char completion[] =
    "Usage: evlock completion bash | zsh\nPrint what the shell needs to complete evlock's words.\n\n"
    "In bash: source <(evlock completion bash)\n"
    "In zsh: write it to a file _evlock in a folder of $fpath.";

static int main_help(void) {
    fputs(about, stdout);
    for (const struct command *const *command = commands; *command; command++)
        printf("  %-12s %s\n", (*command)->name, (*command)->purpose);
    fputs(hints, stdout);
    return EXIT_OK;
}

static int main_help_of(const char *name) {
    if (strcmp(name, "completion") == 0)
        return puts(completion) < 0;
    const struct command *command = commands_find(name);
    if (!command)
        return say_error(EXIT_TROUBLE, "there is no command '%s'; see evlock --help", name);
    commands_help(command);
    return EXIT_OK;
}

static int main_command(const struct command *command, int argc, char **argv) {
    char name[64];
    int first = 0;
    bool help = false;
    snprintf(name, sizeof name, "evlock %s", command->name);
    argv[0] = name; /* which getopt_long() puts before what it says */
    int exit = options_parse(command->groups, command->own, argc, argv, &first, &help);
    if (exit)
        return exit;
    if (help) {
        commands_help(command);
        return EXIT_OK;
    }
    char **operands = argv + first;
    int count = argc - first;
    if (command->groups & OPTIONS_FIRST && count > 1 && strcmp(operands[1], "--") == 0) { /* NAME -- COMMAND */
        operands[1] = operands[0];
        operands++;
        count--;
    }
    if (count < command->least || (command->most >= 0 && count > command->most))
        return say_error(EXIT_TROUBLE, "usage: evlock %s %s", command->name, command->usage);
    if (command->groups & OPTIONS_FIRST && *operands[1] == '-' && operands == argv + first)
        return say_error(EXIT_TROUBLE, "'%s' is no command: options go before NAME, and a shell is run by sh -c '...'",
                         operands[1]);
    return command->run(options_shared(), count, operands);
}

int main(int argc, char **argv) {
    output_begin();
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (argc == 2 && strcmp(word, "help") == 0))
        return output_end(main_help());
    if (strcmp(word, "--version") == 0)
        return output_end(printf("evlock %s\n", evlock_version()) < 0);
    if (strcmp(word, "help") == 0 && argc == 3)
        return output_end(main_help_of(argv[2]));
    if (strcmp(word, "completion") == 0 && argc == 3)
        return output_end(completion_print(argv[2], commands));
    if (strcmp(word, "completion") == 0)
        return say_error(EXIT_TROUBLE, "usage: evlock completion bash | zsh");
    const struct command *command = commands_find(word);
    if (!command)
        return say_error(EXIT_TROUBLE, *word ? "there is no command '%s'; see evlock --help" : "see evlock --help%s",
                         word);
    return output_end(main_command(command, argc - 1, argv + 1));
}
