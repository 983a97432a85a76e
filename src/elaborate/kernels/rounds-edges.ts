/** Rounds in Stage I: the edges, the buffers that they carry, and the reads of later rounds. */
import { linear } from '../../analysis/integers/linear.ts'
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { isDense, isDenseRoot } from '../../ir/coordinates/axis.ts'
import { type Section, sectionsOf } from '../../ir/coordinates/rounds.ts'
import type { Kernel1, RoundsEdge, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { readsIn, writersIn, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { buffersRead } from '../../ir/expressions/expr-tree.ts'
import { report } from '../diagnostics.ts'
import { type Declared, declare, unknownAxis } from './kernel-names.ts'

/** An edge of rounds, which carries no buffers yet; null after a reported error. */
export function edgeOf(d: Declared, e: Ast.RoundsEdge): RoundsEdge | null {
  if (e.edge === 'begin' && !declare(d, e.name, 'iteration')) return null
  const axis = e.axis && d.axes.get(e.axis.name)
  if (e.axis && !axis) return d.broken.has(e.axis.name) || e.edge === 'end' ? null : unknownAxis(d, e.axis)
  if (e.axis && axis && !(isDense(axis) && isDenseRoot(axis)))
    return report('check/rounds', e.axis.span, {
      message: `the number of rounds of ${e.name.name} is not known: ${e.axis.name} is ${axis.kind}`,
      ...(axis.span && { labels: [{ span: axis.span, text: 'declared here' }] }),
      expected: 'an axis that is dense_fixed',
    })
  return {
    kind: 'rounds',
    edge: e.edge,
    name: e.name.name,
    ...(axis && isDense(axis) && { count: axis.extent }),
    flag: e.flag?.name,
    counter: e.counter?.name,
    carried: [],
    span: e.span,
  }
}

/** The statements with the buffers on edges that are declared outside of the rounds, and written in them. */
export function withCarried(body: readonly Stmt1[], edges: readonly Ast.RoundsEdge[]): readonly Stmt1[] {
  const own = new Map(edges.map((e) => [e.name.name, new Set(e.own.map((b) => b.name))]))
  const carried = new Map<string, readonly string[]>()
  const sections = sectionsOf(body)
  for (const s of sections)
    if (s.kind === 'section') {
      const { name } = s.rounds
      checkTemporaries(
        name,
        own.get(name)!,
        sections.flatMap((o) => (o === s ? [] : o.kind === 'section' ? o.body : [o])),
      )
      carried.set(
        name,
        [...writtenBuffers1(s.body)].filter((b) => !own.get(name)!.has(b)),
      )
    }
  return body.map((s) => (s.kind === 'rounds' ? { ...s, carried: carried.get(s.name) ?? [] } : s))
}

/** Reports accesses from outside to buffers that are declared in rounds. */
function checkTemporaries(rounds: string, own: ReadonlySet<string>, outside: readonly Stmt1[]): void {
  const accesses = [...readsIn(outside), ...writersIn(outside).flatMap((w) => w.targets)]
  const access = accesses.find((l) => own.has(l.buffer))
  if (access?.span)
    report('check/rounds', access.span, {
      message: `${access.buffer} is declared in rounds ${rounds}, and used outside of them`,
      hint: `declare ${access.buffer} before the rounds, so that it keeps its value`,
    })
}

/**
 * True if every write of a buffer in rounds goes to the element of the round, so that elements of earlier rounds can be
 * read: the first rounds read the initial value.
 */
export function isFilledBefore(body: readonly Stmt1[], buffer: string): boolean {
  const section = sectionsOf(body).find(
    (s): s is Section<Exclude<Stmt1, RoundsEdge>> =>
      s.kind === 'section' && s.rounds.carried.includes(buffer),
  )
  const counter = section?.rounds.counter
  if (!section || counter === undefined) return false
  const written = targetsOf(section.body, buffer)
  return written.every((t) => t.index.some((e) => buffersRead(e).has(counter)))
}

const targetsOf = (body: readonly Stmt1[], buffer: string): readonly Load[] =>
  writersIn(body).flatMap((s) => s.targets.filter((t) => t.buffer === buffer))

/** The constant c of an index `t + c`, where t counts the rounds; undefined for other indices. */
function offsetOf(e: Expr, counter: string): number | undefined {
  const { terms, constant } = linear(e)
  const [only, other] = [...terms.values()]
  if (!only || other || only.coefficient !== 1) return undefined
  let x = only.term
  while (x.kind === 'cast') x = x.x
  return x.kind === 'load' && x.buffer === counter ? constant : undefined
}

/** Reads of elements that only later rounds write, and conditions that no round changes. */
export function checkRounds({ body, buffers }: Pick<Kernel1, 'body' | 'buffers'>): readonly Diagnostic[] {
  const out: Diagnostic[] = []
  for (const s of sectionsOf(body)) {
    if (s.kind !== 'section') continue
    const { rounds, body: inside } = s
    const { counter, flag, carried } = rounds
    const test = flag === undefined ? [] : inside.filter((x) => writtenBuffers1([x]).has(flag))
    const read = readsIn(test)
    const written = writtenBuffers1(inside.filter((x) => !test.includes(x)))
    if (test.length > 0 && !read.some((l) => written.has(l.buffer)))
      out.push({
        code: 'check/rounds',
        message: `no round of ${rounds.name} changes its condition`,
        ...(test[0]!.span && { span: test[0]!.span }),
        expected: 'a condition on a buffer that the rounds write, such as `residual[] > eps`',
      })
    if (counter === undefined) continue
    for (const name of carried) {
      const role = buffers.find((b) => b.name === name)?.role
      if (role === 'inout') continue
      const targets = targetsOf(inside, name)
      for (const l of readsIn(inside).filter((r) => r.buffer === name))
        for (const [k, e] of l.index.entries()) {
          const at = offsetOf(e, counter)
          const ends = targets.map((t) => offsetOf(t.index[k]!, counter))
          if (at === undefined || !ends.every((end) => end !== undefined && end < at)) continue
          out.push({
            code: 'check/rounds-order',
            message: `the rounds ${rounds.name} read an element of ${name} that only a later round writes`,
            ...(l.span && { span: l.span }),
            labels: targets[0]!.span ? [{ span: targets[0]!.span, text: 'written here' }] : [],
            hint: 'read elements of earlier rounds, such as `S[t - 1]`',
          })
        }
    }
  }
  return out
}
