/**
 * Addresses that copies of a pipelined loop load from memory (rows that are gathered) are loaded an iteration before the
 * copies start, into registers: nobody waits for one load to begin the next.
 */
import { renameBound } from '../ir/bindings.ts'
import { local, store, when, whenAll } from '../ir/build.ts'
import { conjuncts, type Expr, int, type Load, load, lt, variable } from '../ir/expr.ts'
import { children, freeVars, mentions, someExpr, substitute } from '../ir/expr-tree.ts'
import { keyOf } from '../ir/keys.ts'
import type { Buffer, For, Stmt } from '../ir/loops.ts'
import { type Body, exprsOf, rewriteStmts, stmt } from '../ir/tree.ts'
import type { Names } from './names.ts'

/** Addresses of one kind that a thread holds. */
const MOST = 32

export interface AddressesAhead {
  /** The copies with their addresses from registers. */
  readonly copies: Body
  readonly held: readonly Buffer[]
  /** Loads what the copies of the loop's iteration `at` need. */
  readonly fill: (at: Expr) => Body
}

interface Address {
  readonly load: Load
  /** The loops of the copy that it changes with. */
  readonly loops: readonly For[]
  readonly conditions: readonly Expr[]
}

/**
 * `copies` are those that an iteration of `loop` starts, for the iteration `ahead` of it. `stable` says which buffers
 * the loop does not change.
 */
export function addressesAhead(
  copies: Body,
  loop: For,
  ahead: Expr,
  stable: (buffer: string) => boolean,
  names: Names,
): AddressesAhead {
  const found = new Map<string, Address | undefined>()
  for (const s of copies)
    collect(s, [], [], (a, path, conditions) => {
      const key = keyOf(a)
      if (!found.has(key) && stable(a.buffer) && mentions(a, loop.var))
        found.set(key, address(a, path, conditions))
    })
  const kept = [...found].flatMap(([key, a]) => (a ? [{ key, ...a, held: registersFor(a, names) }] : []))
  if (kept.length === 0) return { copies, held: [], fill: () => [] }
  const by = new Map(kept.map((k) => [k.key, k]))
  const over = new Set(kept.flatMap((k) => k.loops.map((l) => l.var)))
  const replaced = rewriteStmts(copies, {
    expr: (e) => {
      const k = e.kind === 'load' ? by.get(keyOf(e)) : undefined
      return k && load(k.held.name, placeIn(k.loops), e.dtype)
    },
    stmt: (s) => (s.kind === 'for' && over.has(s.var) ? unrolled(s) : undefined),
  })
  const fill = (at: Expr): Body => {
    const now = new Map<string, Expr>([[loop.var, at]])
    const within = lt(substitute(ahead, now), loop.extent)
    return kept.map((k): Stmt => {
      const held = whenAll(k.conditions, [store(k.held.name, placeIn(k.loops), k.load)])
      const nest = k.loops.reduceRight<Body>(
        (inner, l) => [unrolled({ ...l, guards: [], body: inner })],
        held,
      )
      const rename = new Map(k.loops.map((l) => [l.var, names.fresh(l.var)]))
      const moved = rewriteStmts(renameBound(nest, rename), {
        expr: (e) => (e.kind === 'var' ? now.get(e.name) : undefined),
      })
      return when(within, moved)
    })
  }
  return { copies: replaced, held: kept.map((k) => k.held), fill }
}

const placeIn = (loops: readonly For[]): readonly Expr[] =>
  loops.length > 0 ? loops.map((l) => variable(l.var)) : [int(0)]

const unrolled = (l: For): For =>
  stmt({ ...l, mode: l.mode.kind === 'serial' ? { kind: 'unroll', factor: null } : l.mode })

const registersFor = (a: Address, names: Names): Buffer =>
  local(
    names.fresh(`${a.load.buffer}_next`),
    a.load.dtype,
    a.loops.map((l) => l.extent),
  )

type Visit = (a: Load, path: readonly For[], conditions: readonly Expr[]) => void

/** The loads in addresses of loads, with the loops and conditions of the copy around them. */
function collect(s: Stmt, path: readonly For[], conditions: readonly Expr[], visit: Visit): void {
  if (s.kind === 'for') {
    const inner = [...path, s]
    for (const x of s.body) collect(x, inner, [...conditions, ...s.guards], visit)
  } else if (s.kind === 'if') {
    const both = conjuncts(s.cond)
    for (const x of s.then) collect(x, path, [...conditions, ...both], visit)
  } else if (s.kind === 'store')
    for (const e of exprsOf(s))
      loadsOf(e, (l) => {
        for (const x of l.index) loadsOf(x, (a) => visit(a, path, conditions))
      })
}

/** The outermost loads of an expression. */
function loadsOf(e: Expr, visit: (l: Load) => void): void {
  if (e.kind === 'load') visit(e)
  else for (const c of children(e)) loadsOf(c, visit)
}

/** What one address needs; nothing where it is not known to be in range without what other loops decide. */
function address(a: Load, path: readonly For[], conditions: readonly Expr[]): Address | undefined {
  const byThread = [a, ...conditions].some((e) => someExpr(e, (x) => x.kind === 'builtin'))
  const loops = path.filter((l) => mentions(a, l.var) || (byThread && l.cooperative))
  const size = loops.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : Infinity), 1)
  if (size > MOST || loops.some((l) => l.mode.kind === 'instr')) return undefined
  const others = path.filter((l) => !loops.includes(l))
  const own = freeVars(a)
  const kept: Expr[] = []
  for (const c of conditions) {
    const vars = [...freeVars(c)]
    if (!vars.some((v) => others.some((l) => l.var === v))) kept.push(c)
    else if (vars.some((v) => own.has(v))) return undefined
  }
  return { load: a, loops, conditions: kept }
}
