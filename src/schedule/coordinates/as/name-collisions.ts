/** Names used by a kernel and by the formats of its tensors, and checks of names that formats take from the data. */

import { fail, failAs } from '../../../ast/diagnostics/diagnostic.ts'
import { namesOfAxis } from '../../../ir/coordinates/axis.ts'
import type { Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import { listAndSetDiagnostic } from '../../../ir/formats/format-tables.ts'

/** Returns all used names, including those of earlier formats, through which data are bound. */
export function takenNames(kernel: Kernel1): Set<string> {
  return new Set([
    ...kernel.axes.flatMap((a) => namesOfAxis(a.name)),
    ...kernel.params.map((p) => p.name),
    ...kernel.buffers.map((b) => b.name),
    ...namesBoundIn(kernel.body),
    ...kernel.reformats.flatMap((r) => [
      ...r.from.flatMap((a) => namesOfAxis(a.name)),
      ...r.buffers.map((b) => b.name),
      ...r.instance.given.map((g) => g.name),
      ...r.instance.parts.flatMap((p) => p.instance.order.flatMap(namesOfAxis)),
    ]),
  ])
}

function namesBoundIn(body: readonly Stmt1[]): readonly string[] {
  const out: string[] = []
  walkStmts1(body, (s) => {
    if (s.kind === 'let') out.push(s.name)
    else if (s.kind === 'iterate') out.push(s.name, ...s.iters.map((x) => x.name))
  })
  return out
}

/** Returns the caller's tensor that a buffer is, or of which the buffer is a part. */
export function originOf(kernel: Kernel1, buffer: string): string {
  const from = kernel.reformats.findLast((r) => r.buffers.some((b) => b.parts.includes(buffer)))
  const old = from?.buffers.find((b) => b.parts.includes(buffer))?.name
  return old === undefined || old === buffer ? buffer : originOf(kernel, old)
}

/**
 * Checks that each list and set of a format has one meaning in the data. Tables of formats do not count, because tables
 * are renamed. @throws SptError `format/argument-kind`, `format/argument-name`
 */
export function checkGiven(kernel: Kernel1, { text, given }: Instance): void {
  for (const { name, kind } of given) {
    const other = kernel.reformats.find((r) =>
      r.instance.given.some((g) => g.name === name && g.kind !== kind),
    )
    if (other)
      fail({
        ...listAndSetDiagnostic(name),
        message: `${name} is passed to ${text} as a ${kind}, and to ${other.format} as a ${kind === 'list' ? 'set' : 'list'}`,
      })
    const what = boundAs(kernel, name, kind)
    if (what !== null)
      failAs('format/argument-name', {
        message: `${text} takes the ${kind} ${name}, and ${name} is ${what}`,
        expected: `a ${kind} under a distinct name`,
        hint: `pass another name, and bind the ${kind} under that name`,
      })
  }
}

/** Other data under the name of a list or set; null if there are none, or if they are the same array. */
function boundAs(kernel: Kernel1, name: string, kind: 'list' | 'set'): string | null {
  const origin = originOf(kernel, name)
  if (origin !== name) return `a part of ${origin}`
  const b = kernel.buffers.find((x) => x.name === name && !x.table)
  if (!b || kind === 'set' || (b.role === 'in' && b.dtype === 'i32' && b.axes.length === 1)) return null
  return 'a tensor of the kernel'
}
