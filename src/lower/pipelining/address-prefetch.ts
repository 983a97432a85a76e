/**
 * Software pipelining of indirect loads (prefetching of gathered addresses). Copies of a pipelined loop may load their addresses from
 * memory, for example the numbers of gathered rows. These addresses are loaded into registers one iteration before the copies start.
 * Loop-invariant addresses are loaded once, before the loop.
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { conjuncts, type Expr, int, type Load, load, not, variable } from '../../ir/expressions/expr.ts'
import { children, evaluationGuard, freeVars, mentions, someExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import { renameBound, substituteStmts } from '../../ir/statements/bindings.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { local, store, when, whenAll } from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, rewriteStmts, stmt } from '../../ir/statements/tree.ts'

/** Upper bound on the addresses of one load expression that a thread keeps in registers. */
const MOST = 32

/** Copies that read values from `registers`. */
export interface Hoisted {
  readonly copies: Body
  readonly registers: readonly Buffer[]
  /** Returns statements that compute the registers if `within` holds, after replacing variables by the expressions in `at`. */
  readonly fill: (within?: Expr, at?: ReadonlyMap<string, Expr>) => Body
}

interface Address {
  readonly load: Load
  /** The loops of the copy on which the address depends. */
  readonly loops: readonly For[]
  /** The address is in range, and therefore loaded, if all conditions of at least one list hold. */
  readonly cases: readonly (readonly Expr[])[]
}

/** A load that a copy evaluates, with its enclosing loops and the conditions that hold at this point. */
interface Use {
  readonly load: Load
  readonly path: readonly For[]
  readonly conditions: readonly Expr[]
}

/**
 * Prefetches the addresses that change with the iteration (`moving`), for copies that run under the conditions `known`. `stable` returns
 * true for buffers that are not written meanwhile.
 */
export const addressesAhead = (
  copies: Body,
  known: readonly Expr[],
  moving: (a: Load) => boolean,
  stable: (buffer: string) => boolean,
  names: Names,
): Hoisted => inRegisters(copies, known, (u) => moving(u.load), [], stable, names)

/**
 * Hoists addresses out of `loop`: those that are invariant in `loop`, but change within a copy or between iterations of the outer loop
 * `over`.
 */
export function addressesOnce(
  copies: Body,
  loop: For,
  stable: (buffer: string) => boolean,
  names: Names,
  over?: For,
): Hoisted {
  const fixed = ({ load, path }: Use): boolean =>
    !mentions(load, loop.var) &&
    (path.some((l) => mentions(load, l.var)) || (over !== undefined && mentions(load, over.var)))
  return inRegisters(copies, [], fixed, [loop], stable, names)
}

interface Kept extends Address {
  readonly key: string
  readonly registers: Buffer
}

/**
 * Replaces the addresses for which `asked` returns true by registers. `around`: enclosing loops in which these addresses are invariant.
 */
function inRegisters(
  copies: Body,
  known: readonly Expr[],
  isSelected: (u: Use) => boolean,
  around: readonly For[],
  stable: (buffer: string) => boolean,
  names: Names,
): Hoisted {
  const uses = new Map<string, Use[]>()
  visitUses(copies, known, (u, ofAddress) => {
    if (ofAddress && isSelected(u)) uses.set(keyOf(u.load), [])
  })
  visitUses(copies, known, (u) => uses.get(keyOf(u.load))?.push({ ...u, path: [...around, ...u.path] }))
  const kept = [...uses].flatMap(([key, list]): Kept[] => {
    const a = addressOf(list, stable)
    return a ? [{ key, ...a, registers: registersFor(a, names) }] : []
  })
  const by = new Map(kept.map((k) => [k.key, k]))
  const over = new Set(kept.flatMap((k) => k.loops.map((l) => l.var)))
  const replaced = rewriteStmts(copies, {
    expr: (e) => {
      const k = e.kind === 'load' ? by.get(keyOf(e)) : undefined
      return k && load(k.registers.name, placeIn(k.loops), e.dtype)
    },
    stmt: (s) => (s.kind === 'for' && over.has(s.var) ? unrolled(s) : undefined),
  })
  return {
    copies: replaced,
    registers: kept.map((k) => k.registers),
    fill: (within, at = new Map()) =>
      kept.flatMap((k) => {
        const body = substituteStmts(filling(k, names), at)
        return within ? [when(within, body)] : body
      }),
  }
}

/** Returns the loop nest that loads each address into its register. */
function filling(k: Kept, names: Names): Body {
  const registers = store(k.registers.name, placeIn(k.loops), k.load)
  const nest = k.loops.reduceRight<Body>(
    (inner, l) => [unrolled({ ...l, guards: [], body: inner })],
    k.cases.flatMap((conditions) => whenAll(conditions, [registers])),
  )
  return renameBound(nest, new Map(k.loops.map((l) => [l.var, names.fresh(l.var)])))
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

type Visit = (u: Use, ofAddress: boolean) => void

/** Visits every load of the copies in evaluation order. `ofAddress` is true for loads in the address of a stored value. */
function visitUses(copies: Body, known: readonly Expr[], visit: Visit): void {
  for (const s of copies) visitStmt(s, [], known, visit)
}

function visitStmt(s: Stmt, path: readonly For[], known: readonly Expr[], visit: Visit): void {
  const bodies = (list: Body, around: readonly For[], conditions: readonly Expr[]): void => {
    for (const x of list) visitStmt(x, around, conditions, visit)
  }
  if (s.kind === 'for') {
    visitExpr(s.extent, path, known, 0, visit)
    const inner = [...path, s]
    const all = visitTerms(s.guards, inner, known, visit)
    bodies(s.body, inner, all)
  } else if (s.kind === 'if') {
    bodies(s.then, path, visitTerms(conjuncts(s.cond), path, known, visit))
    bodies(s.else, path, [...known, not(s.cond)])
  } else for (const e of exprsOf(s)) visitExpr(e, path, known, s.kind === 'store' ? 2 : 0, visit)
}

/** Visits each condition under the conditions before it, and returns `known` with all conditions appended. */
function visitTerms(
  terms: readonly Expr[],
  path: readonly For[],
  known: readonly Expr[],
  visit: Visit,
): readonly Expr[] {
  let all = known
  for (const c of terms) {
    visitExpr(c, path, all, 0, visit)
    all = [...all, c]
  }
  return all
}

/** `depth`: 2 in a stored value, 1 in the address of an outermost load of a stored value, otherwise 0. */
function visitExpr(e: Expr, path: readonly For[], known: readonly Expr[], depth: number, visit: Visit): void {
  const go = (x: Expr, conditions = known): void => visitExpr(x, path, conditions, depth, visit)
  if (e.kind === 'load') {
    visit({ load: e, path, conditions: known }, depth === 1)
    for (const x of e.index) visitExpr(x, path, known, Math.max(0, depth - 1), visit)
    return
  }
  for (const [k, x] of children(e).entries()) {
    const where = evaluationGuard(e, k)
    go(x, where ? [...known, where] : known)
  }
}

/** Returns one address that serves all uses, or `undefined` if the uses differ or need more than `MOST` registers. */
function addressOf(uses: readonly Use[], stable: (buffer: string) => boolean): Address | undefined {
  const addresses = uses.map((u) => address(u, stable))
  const [first] = addresses
  if (!first) return undefined
  const cases = new Map<string, readonly Expr[]>()
  for (const a of addresses) {
    if (a?.loops.length !== first.loops.length || a.loops.some((l, k) => !sameLoop(l, first.loops[k]!)))
      return undefined
    cases.set([...new Set(a.conditions.map(keyOf))].sort().join(), a.conditions)
  }
  const holds = (a: readonly Expr[], b: readonly Expr[]): boolean =>
    a.every((c) => b.some((d) => keyOf(c) === keyOf(d)))
  const all = [...cases.values()]
  return {
    load: first.load,
    loops: first.loops,
    cases: all.filter((b) => !all.some((a) => a !== b && holds(a, b))),
  }
}

const sameLoop = (a: For, b: For): boolean =>
  a.var === b.var && sameExpr(a.extent, b.extent) && a.mode.kind === b.mode.kind

/**
 * Returns the address of one use with its loops and conditions. `undefined` if a condition depends on other loops and shares a variable
 * with the address, if more than `MOST` registers are needed, or if a buffer that is read may be written meanwhile.
 */
function address(
  { load: a, path, conditions }: Use,
  stable: (buffer: string) => boolean,
): { readonly load: Load; readonly loops: readonly For[]; readonly conditions: readonly Expr[] } | undefined {
  const byThread = [a, ...conditions].some((e) => someExpr(e, (x) => x.kind === 'builtin'))
  const loops = path.filter((l) => mentions(a, l.var) || (byThread && l.cooperative))
  const size = loops.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : Infinity), 1)
  if (size > MOST || loops.some((l) => l.mode.kind === 'instr')) return undefined
  const others = path.filter((l) => !loops.includes(l))
  const addressVars = freeVars(a)
  const kept: Expr[] = []
  for (const c of conditions) {
    const vars = [...freeVars(c)]
    if (!vars.some((v) => others.some((l) => l.var === v))) kept.push(c)
    else if (vars.some((v) => addressVars.has(v))) return undefined
  }
  const moves = (e: Expr): boolean =>
    someExpr(e, (x) => (x.kind === 'load' || x.kind === 'search') && !stable(x.buffer))
  return [a, ...kept].some(moves) ? undefined : { load: a, loops, conditions: kept }
}
