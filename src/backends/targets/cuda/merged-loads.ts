/**
 * Read-only cache loads (`ld.global.nc`) that NVVM may merge with loads of updated memory. NVVM 13.0 merges two loads at a
 * join by selecting the address (`c ? W[j] : Q[p]`, or `x = Q[p]; if (c) x = W[j]`), and emits `ld.global.nc` if either
 * pointer was `const … __restrict__`. If the launch writes Q, the merged load may return its old value.
 */
import { targetsOf, writesOf } from '../../../ir/accesses.ts'
import { DTYPE_BYTES } from '../../../ir/dtype.ts'
import type { Expr } from '../../../ir/expr.ts'
import { children } from '../../../ir/expr-tree.ts'
import type { Buffer, Launch } from '../../../ir/loops.ts'
import { exprsOf, piecesOf, walkStmts } from '../../../ir/tree.ts'

/**
 * Use of a loaded value at a merge point: unchanged (`bare`), or after arithmetic (`computed`). The compiler merges equal
 * operators into one on merged operands, so a bare load never merges with a computed value.
 */
type How = 'bare' | 'computed'
type Reads = Map<string, Set<How>>

/**
 * Read-only buffers of a launch whose loads the compiler may merge with loads of a buffer that the launch updates: same load
 * type, and both bare or both computed.
 */
export function mergedWithUpdated(
  { body }: Launch,
  global: ReadonlyMap<string, Buffer>,
): ReadonlySet<string> {
  const written = writesOf(body)
  const reads = readsBy(body, global)
  const kinds = (b: string): readonly string[] => {
    const buffer = global.get(b)
    return buffer ? [...(reads.get(b) ?? [])].map((how) => `${loadedAs(buffer)} ${how}`) : []
  }
  // What is there already meets what may be stored there.
  for (const b of written) reads.get(b)?.add('bare')
  const updated = new Set([...written].flatMap(kinds))
  return new Set([...reads.keys()].filter((b) => !written.has(b) && kinds(b).some((k) => updated.has(k))))
}

/** Load type as the compiler sees it: the width only, without signedness or the kind of 16-bit float. */
const loadedAs = ({ dtype }: Buffer): string =>
  dtype === 'f32' || dtype === 'f64' ? dtype : `${8 * DTYPE_BYTES[dtype]} bits`

/** Uses of arrays, registers and names, including indirect ones through other registers and names. */
function readsBy(body: Launch['body'], global: ReadonlyMap<string, Buffer>): Reads {
  const reads: Reads = new Map()
  let changed = true
  const add = (name: string, how: How): void => {
    const known = reads.get(name) ?? new Set()
    if (known.has(how)) return
    reads.set(name, known.add(how))
    changed = true
  }
  const seen = { bare: new Set<Expr>(), computed: new Set<Expr>() }
  const visit = (e: Expr, how: How): void => {
    if (seen[how].has(e)) return
    seen[how].add(e)
    if (e.kind === 'var') add(e.name, how)
    if (e.kind === 'load' || e.kind === 'search') add(e.buffer, how)
    const place = e.kind === 'load' || e.kind === 'search'
    // A place is a value of its own, which meets other places.
    for (const c of children(e)) visit(c, place ? 'bare' : passes(e) ? how : 'computed')
  }
  const through = (names: readonly string[], own: readonly How[]): readonly How[] => [
    ...new Set([...own, ...names.flatMap((n) => [...(reads.get(n) ?? [])])]),
  ]
  const places: Expr[] = []
  const values: Values[] = []
  walkStmts(body, (s) => {
    // What a text does with an address is its own business.
    if (s.kind === 'instr')
      for (const p of piecesOf(s))
        if ('buffer' in p) for (const how of ['bare', 'computed'] as const) add(p.buffer, how)
    const targets = targetsOf(s)
    const names =
      s.kind === 'let' ? [s.name] : s.kind === 'vector_load' ? s.names : targets.map((t) => t.buffer)
    const inRegisters = names.length > 0 && names.every((n) => !global.has(n))
    values.push({ of: exprsOf(s), names, own: inRegisters ? [] : ['bare'] })
    for (const t of targets) places.push(...t.index)
  })
  for (const e of places) visit(e, 'bare')
  while (changed) {
    changed = false
    for (const { of, names, own } of values)
      for (const how of through(names, own)) for (const e of of) visit(e, how)
  }
  return reads
}

/** Expressions of a statement, the names they define, and the uses that hold for any use of these names. */
interface Values {
  readonly of: readonly Expr[]
  readonly names: readonly string[]
  readonly own: readonly How[]
}

/**
 * True if the expression may return an operand unchanged, or differ from it by the operand alone: `c ? x : y`, `x + 0`,
 * `int(x)`.
 */
const passes = (e: Expr): boolean =>
  e.kind === 'select' || e.kind === 'cast' || (e.kind === 'binary' && PASSING.has(e.op))
const PASSING: ReadonlySet<string> = new Set(['add', 'and', 'or', 'min', 'max'])
