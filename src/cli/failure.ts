/** Whatever a command threw → text on standard error and an exit code. */
import { type Diagnostic, SptError } from '../ast/diagnostic.ts'
import { render } from '../ast/render.ts'
import type { Io } from './io.ts'
import { renderUsage, UsageError } from './usage.ts'

export const EXIT = { ok: 0, failed: 1, usage: 2, bug: 70 } as const

/** What the command line calls what the library names in its own terms. */
const HINTS: Readonly<Record<string, string>> = {
  'api/unknown-kernel': 'choose one with --kernel NAME',
  'bind/missing-size': 'give it with --size NAME=N, or bind a tensor that has it with --bind NAME=PATH',
  'bind/missing-scalar': 'give it with --size NAME=VALUE',
  'bind/unknown-size': '--size takes the sizes and scalars of the kernel',
  'bind/unknown-name': '--bind takes the buffers and axes of the kernel',
}

export function showDiagnostics(error: SptError, io: Io): void {
  const list = error.diagnostics.map((d): Diagnostic => {
    const hint = HINTS[d.code]
    return hint === undefined ? d : { ...d, hint }
  })
  io.err(`${render(list, error.sources ?? [], { color: io.color.err })}\n`)
}

export function showFailure(error: unknown, io: Io): number {
  if (error instanceof UsageError) {
    io.err(`${renderUsage(error.problem)}\n`)
    return EXIT.usage
  }
  if (error instanceof SptError) {
    showDiagnostics(error, io)
    return EXIT.failed
  }
  const memory = error instanceof RangeError && /allocation|array length|buffer/i.test(error.message)
  if (memory) {
    io.err('error[run/out-of-memory]: this machine has no memory for that\n  = hint: use smaller sizes\n')
    return EXIT.failed
  }
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  io.err(
    `this is a bug of spt, not of your program: ${what.split('\n')[0]}\n` +
      '  = hint: please report it with the command and its files; SPT_DEBUG=1 shows where it happened\n',
  )
  if (io.env.SPT_DEBUG === '1' && error instanceof Error) io.err(`${error.stack}\n`)
  return EXIT.bug
}
