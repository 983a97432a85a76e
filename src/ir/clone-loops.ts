/** Copies of loops and their bodies. */
import { boundVarsOf, renameBound, renameBuffers } from './bindings.ts'
import type { FreshNames } from './bound-names.ts'
import { allocations } from './definitions.ts'
import { type Expr, variable } from './expr.ts'
import { substitute } from './expr-tree.ts'
import type { For, LoopMode } from './loops.ts'
import { type Body, stmt } from './tree.ts'

/** The body at one value of the loop variable, with its own names for what it binds. */
export const bodyAt = (loop: For, value: Expr, names: FreshNames): Body =>
  copyOf(loop.body, names, new Map([[loop.var, value]]))

/**
 * The same statements with their own names for what they bind, and `values` in the place of variables; none is one of the
 * others, by which they are found.
 */
export function copyOf(
  statements: Body,
  names: FreshNames,
  values: ReadonlyMap<string, Expr> = new Map(),
): Body {
  const rename = new Map([...boundVarsOf(statements)].map((v) => [v, names.fresh(v)]))
  const body = renameBound(statements, rename, { values, copy: true })
  return renameBuffers(body, new Map([...allocations(body).keys()].map((name) => [name, names.fresh(name)])))
}

/**
 * How a copy of a loop around other statements runs. What an instruction does is not done there, and what the loop copies into
 * shared memory ahead of its use stands in the loop alone.
 */
export const modeOfCopy = ({ mode }: For): LoopMode =>
  mode.kind === 'instr' || mode.kind === 'pipeline' ? { kind: 'serial' } : mode

/** The loops under new names around what `make` gives for their variables and what `around` says. */
export function nestOf(
  loops: readonly For[],
  names: FreshNames,
  around: ReadonlyMap<string, Expr>,
  make: (map: ReadonlyMap<string, Expr>) => Body,
): Body {
  const map = new Map(around)
  const copies = loops.map((l): For => {
    const name = names.fresh(l.var)
    map.set(l.var, variable(name))
    const extent = substitute(l.extent, map)
    const guards = l.guards.map((g) => substitute(g, map))
    return { ...l, var: name, mode: modeOfCopy(l), extent, guards }
  })
  return copies.reduceRight<Body>((body, l) => [stmt({ ...l, body })], make(map))
}
