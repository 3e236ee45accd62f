/* What bash and zsh need to complete the command line. */
#include <stdio.h>
#include <string.h>

#include "completion.h"
#include "exits.h"
#include "say.h"

/* The tables of options that a command knows, its own first. Returns how many there are. */
enum { COMPLETION_TABLES = 8 };

static size_t completion_tables(const struct command *command, const struct option_row *tables[COMPLETION_TABLES]) {
    size_t count = 0;
    if (command->own)
        tables[count++] = command->own;
    for (unsigned group = OPTIONS_SERVER; group < OPTIONS_FIRST; group *= 2) {
        if (command->groups & group)
            tables[count++] = options_rows((enum options_group)group);
    }
    return count;
}

static bool completion_wants_file(const struct option_row *row) {
    return row->argument && strcmp(row->argument, "FILE") == 0;
}

/* Calls `write` for each option of a command. */
static void completion_each(const struct command *command, void (*write)(const struct option_row *row)) {
    const struct option_row *tables[COMPLETION_TABLES];
    size_t count = completion_tables(command, tables);
    for (size_t i = 0; i < count; i++) {
        for (const struct option_row *row = tables[i]; row->name; row++)
            write(row);
    }
}

/* --- bash --------------------------------------------------------------------------------------------------------- */

static void completion_bash_name(const struct option_row *row) {
    printf(" --%s", row->name);
    if (row->letter)
        printf(" -%c", row->letter);
}

static void completion_bash_file(const struct option_row *row) {
    if (completion_wants_file(row))
        printf("--%s ", row->name);
}

static void completion_bash_value(const struct option_row *row) {
    if (row->argument && !completion_wants_file(row)) {
        printf("--%s ", row->name);
        if (row->letter)
            printf("-%c ", row->letter);
    }
}

static void completion_bash_command(const struct command *command) {
    printf("    %s)\n        options='--help -h", command->name);
    completion_each(command, completion_bash_name);
    printf("'\n        files=' ");
    completion_each(command, completion_bash_file);
    printf("'\n        values=' ");
    completion_each(command, completion_bash_value);
    printf("'\n        ;;\n");
}

/* Behind the options of a command that runs another, that one is completed. */
static void completion_bash(const struct command *const *commands) {
    printf("# bash completion for evlock; made by 'evlock completion bash'.\n\n_evlock() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local options='' files='' values='' runs='' i operands=0 past=0\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n        mapfile -t COMPREPLY < <(compgen -W '--help --version help "
           "completion");
    for (const struct command *const *command = commands; *command; command++)
        printf(" %s", (*command)->name);
    printf("' -- \"$word\")\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n    help)\n        options='");
    for (const struct command *const *command = commands; *command; command++)
        printf("%s ", (*command)->name);
    printf("'\n        ((COMP_CWORD == 2)) && mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
           "        return\n        ;;\n"
           "    completion)\n"
           "        ((COMP_CWORD == 2)) && mapfile -t COMPREPLY < <(compgen -W 'bash zsh' -- \"$word\")\n"
           "        return\n        ;;\n");
    for (const struct command *const *command = commands; *command; command++)
        completion_bash_command(*command);
    printf("    esac\n    case ${COMP_WORDS[1]} in\n    ");
    for (const struct command *const *command = commands; *command; command++) {
        if ((*command)->groups & OPTIONS_FIRST)
            printf("%s | ", (*command)->name);
    }
    printf("'') runs=1 ;;\n    esac\n"
           "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
           "        if ((past == 0)) && [[ ${COMP_WORDS[i]} == -- ]]; then\n            past=1\n"
           "        elif ((past == 0)) && [[ ${COMP_WORDS[i]} == -* ]]; then\n"
           "            [[ $files$values == *\" ${COMP_WORDS[i]} \"* ]] && i=$((i + 1))\n"
           "        else\n            operands=$((operands + 1))\n            [[ $runs ]] && past=1\n"
           "        fi\n    done\n"
           "    if [[ $runs ]] && ((operands > 1)); then\n        compopt -o default\n"
           "    elif [[ $runs ]] && ((operands == 1)); then\n"
           "        mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
           "    elif ((past == 0)) && [[ $files == *\" $before \"* ]]; then\n"
           "        compopt -o filenames\n        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
           "    elif ((past == 0)) && [[ $values == *\" $before \"* ]]; then\n        return\n"
           "    elif ((past == 0)) && [[ $word == -* ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
           "    fi\n}\n\ncomplete -F _evlock evlock\n");
}

/* --- zsh ---------------------------------------------------------------------------------------------------------- */

/* A text inside quotes and brackets. */
static void completion_zsh_text(const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void completion_zsh_spec(const struct option_row *row, const char *dashes, const char *name) {
    bool again = row->kind == OPTION_COUNT || row->kind == OPTION_URL;
    printf(" \\\n            '%s%s%s[", again ? "*" : "", dashes, name);
    completion_zsh_text(row->help);
    putchar(']');
    if (row->argument)
        printf(":%s:%s", row->argument, completion_wants_file(row) ? "_files" : "");
    putchar('\'');
}

static void completion_zsh_option(const struct option_row *row) {
    char letter[] = {row->letter, '\0'};
    completion_zsh_spec(row, "--", row->name);
    if (row->letter)
        completion_zsh_spec(row, "-", letter);
}

static void completion_zsh_command(const struct command *command) {
    bool runs = command->groups & OPTIONS_FIRST;
    printf("        %s)\n            _arguments%s '(- *)'{-h,--help}'[say more of this]'", command->name,
           runs ? " -S -A \"-*\"" : "");
    completion_each(command, completion_zsh_option);
    if (command->most != 0)
        printf(" \\\n            '1:%sname:'", command->least > 0 ? "" : ":");
    if (runs)
        printf(" \\\n            '2:command:_command_names -e' \\\n            '*::argument:_normal'");
    printf("\n            ;;\n");
}

static void completion_zsh(const struct command *const *commands) {
    printf("#compdef evlock\n# zsh completion for evlock; made by 'evlock completion zsh'.\n\n_evlock() {\n"
           "    local -a commands=(\n");
    for (const struct command *const *command = commands; *command; command++) {
        printf("        '%s:", (*command)->name);
        completion_zsh_text((*command)->purpose);
        printf("'\n");
    }
    printf("        'help:Say more of a command.'\n"
           "        'completion:Print what a shell needs to complete these words.'\n    )\n"
           "    if ((CURRENT == 2)); then\n        _describe command commands\n"
           "        _arguments '--help[say what evlock can do]' '--version[say which version this is]'\n"
           "        return\n    fi\n    local command=${words[2]}\n    words=(\"${(@)words[2,-1]}\")\n"
           "    ((CURRENT--))\n    case $command in\n"
           "        help)\n            _describe command commands\n            ;;\n"
           "        completion)\n            _values shell bash zsh\n            ;;\n");
    for (const struct command *const *command = commands; *command; command++)
        completion_zsh_command(*command);
    printf("    esac\n}\n\n_evlock \"$@\"\n");
}

/* ------------------------------------------------------------------------------------------------------------------ */

int completion_print(const char *shell, const struct command *const *commands) {
    if (strcmp(shell, "bash") == 0)
        completion_bash(commands);
    else if (strcmp(shell, "zsh") == 0)
        completion_zsh(commands);
    else
        return say_error(EXIT_TROUBLE, "there is no completion for '%s': it is for bash and for zsh", shell);
    return EXIT_OK;
}
