/**
 * Loop unrolling of rounds before a kernel is derived: copies of the statements, with the number of the round as a constant
 * and temporaries of their own. Versions of the tensors then keep the states that the backward pass reads (the tape).
 */
import { failAt, type Span } from '../ast/diagnostics/diagnostic.ts'
import { sectionsOf } from '../ir/coordinates/rounds.ts'
import type { Kernel1, RoundsEdge } from '../ir/coordinates/stage1.ts'
import { type Body1, mapExprs1, rewriteStmts1, writtenBuffers1 } from '../ir/coordinates/stage1-tree.ts'
import { Names } from '../ir/expressions/bound-names.ts'
import { constant, type Expr, type Load, load } from '../ir/expressions/expr.ts'
import { rewriteExpr } from '../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../ir/memoize.ts'
import { namesIn } from './needed.ts'

/** The time to derive a kernel grows with the square of the number: 256 rounds take seconds. */
const MAX_COPIES = 256

/** The kernel without rounds, and the copies of temporaries by name. @throws SptError `derive/rounds` if their number is not a constant */
export function withoutRounds(kernel: Kernel1, span: Span | undefined) {
  const sections = sectionsOf(kernel.body)
  const copies = new Map<string, string[]>()
  if (!sections.some((s) => s.kind === 'section')) return { kernel, copies }
  const names = new Names(namesIn(kernel))
  const counters = new Set<string>()
  const buffers = [...kernel.buffers]
  const fillOf = (l: Load): number => kernel.buffers.find((b) => b.name === l.buffer)!.fill
  const copy = (body: Body1, rounds: RoundsEdge, k: number): Body1 => {
    const renamed = new Map<string, string>()
    for (const of of writtenBuffers1(body)) {
      if (rounds.carried.includes(of) || k === 0) continue
      const name = names.fresh(`${of}_${k}`)
      renamed.set(of, name)
      getOrAdd(copies, of, () => []).push(name)
      buffers.push({ ...kernel.buffers.find((b) => b.name === of)!, name })
    }
    const named = rewriteStmts1(body, (s) =>
      s.kind === 'iterate' && k > 0 ? { ...s, name: names.fresh(`${s.name}_${k}`) } : undefined,
    )
    const inCopy = (l: Load, index: readonly Expr[]): Load =>
      load(renamed.get(l.buffer) ?? l.buffer, index, l.dtype, l.span)
    const read = (e: Expr): Expr =>
      rewriteExpr(e, (x) => {
        if (x.kind !== 'load') return undefined
        if (x.buffer === rounds.counter) return constant(k, x.dtype)
        // The first rounds read the initial value for elements before the first one.
        if (x.index.some((i) => i.kind === 'const' && i.value < 0)) return constant(fillOf(x), x.dtype)
        return renamed.has(x.buffer) ? inCopy(x, x.index) : undefined
      })
    return rewriteStmts1(named, (s) => mapExprs1(s, read, (t) => inCopy(t, t.index.map(read))))
  }
  const isCounting = (body: Body1): boolean => {
    const written = [...writtenBuffers1(body)]
    return written.length > 0 && written.every((b) => counters.has(b))
  }
  const body = sections.flatMap((s): Body1 => {
    if (s.kind !== 'section') return [s]
    const { rounds } = s
    if (rounds.counter !== undefined) counters.add(rounds.counter)
    const statements = s.body.filter((x) => !isCounting([x]))
    return Array.from({ length: copiesOf(rounds, kernel, span) }, (_, k) =>
      copy(statements, rounds, k),
    ).flat()
  })
  return { kernel: { ...kernel, buffers, body: body.filter((x) => !isCounting([x])) }, copies }
}

function copiesOf({ name, count, flag, span: at }: RoundsEdge, kernel: Kernel1, span?: Span): number {
  if (flag === undefined && count?.kind === 'const' && count.value <= MAX_COPIES) return count.value
  const message =
    flag === undefined ? `whose number is not a constant up to ${MAX_COPIES}` : 'which a condition ends'
  return failAt('derive/rounds', span ?? at, {
    message: `kernel ${kernel.name} has rounds ${name}, ${message}`,
    ...(at && { labels: [{ span: at, text: 'declared here' }] }),
    expected: 'a constant number of rounds, such as the axis `t = dense_fixed(12)`',
    hint: 'give the axis of the rounds a constant extent, or derive a kernel of one round',
  })
}
