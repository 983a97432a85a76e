/** Usage errors of the command line. Exit code 2; all other errors that users cause have 1. */
import type { Advice, Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine, escapeText } from '../../ast/diagnostics/render.ts'
import { suggestion } from '../../ast/diagnostics/suggest.ts'

export type UsageProblem = Pick<Diagnostic, 'message'> &
  Advice & {
    /** The command it is about. */
    readonly command?: string | undefined
  }

export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly problem: UsageProblem

  constructor(problem: UsageProblem) {
    super(problem.message)
    this.problem = problem
  }
}

export function rejectUsage(problem: UsageProblem): never {
  throw new UsageError(problem)
}

export function renderUsage({ message, command, expected, lookup, hint }: UsageProblem): string {
  const name = command === undefined ? 'spt' : `spt ${command}`
  const proposal = lookup && suggestion(lookup, !expected && !hint)
  const lines = [
    `${name}: ${escapeLine(message)}`,
    ...(expected === undefined ? [] : [`  expected: ${escapeLine(expected)}`]),
    ...(proposal ? [`  ${proposal.title}: ${proposal.text}`] : []),
    ...(hint === undefined ? [] : [`  hint: ${escapeLine(hint)}`]),
    `  help: ${name} --help`,
  ]
  return escapeText(lines.join('\n'))
}
