/** The help texts. */
import { HELP } from './args.ts'
import type { CommandSpec } from './command.ts'

const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(0, ...rows.map(([a]) => a.length))
  return rows.map(([a, b]) => `  ${a.padEnd(width)}  ${b}`.trimEnd()).join('\n')
}

export function overview(commands: readonly CommandSpec[], version: string): string {
  return `spt ${version}: sparse tensor kernels from text. A kernel states the computation, formats
the storage of tensors, and schedules the order of loops. Formats and schedules cannot change the result.

Usage: spt <command> [options]

Commands:
${columns([
  ...commands.map((c) => [`${c.name} ${c.args}`, c.summary] as const),
  ['help [COMMAND]', 'Show help'],
])}

Options:
${columns([
  [HELP.flags, HELP.about],
  ['-v, --version', 'Show the version'],
])}

Start with:
  spt doctor                                     list the available devices
  spt run kernel.spt --bind A=graph.mtx --verify  run a kernel and compare with the reference
  spt show kernel.spt --stage 2                  print the loops

To write a file to standard output, use /dev/stdout; reports are then on standard error.
Exit codes: 0 success, 1 an error in a program, in data or in a result, 2 wrong usage.
`
}

export function helpOf(c: CommandSpec): string {
  return `${[
    `${c.summary}.`,
    `Usage: spt ${c.name} ${c.args}${c.options.length > 0 ? ' [options]' : ''}`,
    `Options:\n${columns([...c.options, HELP].map((o) => [o.flags, o.about + (o.repeats ? ' (repeatable)' : '')]))}`,
    ...(c.notes ?? []),
    `Examples:\n${c.examples.map((e) => `  ${e}`).join('\n')}`,
  ].join('\n\n')}\n`
}
