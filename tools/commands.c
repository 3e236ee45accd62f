/* All subcommands: their table, and the help of each. */
#include <stdio.h>
#include <string.h>

#include "commands.h"

const struct command *const commands[] = {
    &run_command,     &elect_command,  &hold_command, &acquire_command, &extend_command,
    &release_command, &status_command, &list_command, &top_command,     &wait_command,
    &break_command,   &doctor_command, NULL,
};

const struct command *commands_find(const char *name) {
    for (const struct command *const *command = commands; *command; command++) {
        if (strcmp((*command)->name, name) == 0)
            return *command;
    }
    return NULL;
}

void commands_help(const struct command *command) {
    printf("Usage: evlock %s %s\n%s\n", command->name, command->usage, command->purpose);
    options_help(command->groups, command->own);
    if (command->details)
        printf("\n%s", command->details);
}
