/**
 * Definitions: what statements bind (loops, names, allocations), found once for each statement, and loops found and replaced
 * by their variable.
 */
import { invariant } from '../ast/diagnostic.ts'
import { replacedAt } from './lists.ts'
import type { Buffer, For, Stmt } from './loops.ts'
import { remembered } from './remembered.ts'
import { type Body, bodiesOf, withBodies } from './tree.ts'

/** What stands in a statement, with itself. */
interface Definitions {
  /** Outer before inner. */
  readonly loops: readonly For[]
  readonly vars: ReadonlySet<string>
  /** Loops by what users call them: `i` and `agg.i`. */
  readonly named: ReadonlyMap<string, readonly For[]>
  readonly allocs: ReadonlyMap<string, Buffer>
  /** All that is bound: of loops, lets and allocations. */
  readonly names: ReadonlySet<string>
}

const NOTHING: Definitions = {
  loops: [],
  vars: new Set(),
  named: new Map(),
  allocs: new Map(),
  names: new Set(),
}

/** What a statement itself binds. */
export function boundBy(s: Stmt): readonly string[] {
  switch (s.kind) {
    case 'for':
      return [s.var]
    case 'let':
      return [s.name]
    case 'alloc':
      return [s.buffer.name]
    case 'vector_load':
      return s.names
    default:
      return []
  }
}

function bindsNothing({ kind }: Stmt): boolean {
  switch (kind) {
    case 'store':
    case 'reduce':
    case 'fill':
    case 'barrier':
    case 'vector_store':
    case 'instr':
      return true
    default:
      return false
  }
}

export const definitionsIn = (s: Stmt): Definitions => (bindsNothing(s) ? NOTHING : definitionsInside(s))

const definitionsInside = remembered((s: Stmt): Definitions => {
  const loops: For[] = []
  const names = new Set<string>()
  const named = new Map<string, For[]>()
  const allocs = new Map<string, Buffer>()
  const go = (x: Stmt): void => {
    if (x.kind === 'for') {
      loops.push(x)
      for (const name of [x.name, `${x.nest}.${x.name}`]) {
        const others = named.get(name)
        if (others) others.push(x)
        else named.set(name, [x])
      }
    }
    for (const name of boundBy(x)) names.add(name)
    if (x.kind === 'alloc') allocs.set(x.buffer.name, x.buffer)
    for (const b of bodiesOf(x)) b.forEach(go)
  }
  go(s)
  return { loops, vars: new Set(loops.map((l) => l.var)), named, allocs, names }
})

/** All loops, outer before inner. */
export const loopsOf = (body: Body): readonly For[] =>
  body.length === 1 ? definitionsIn(body[0]!).loops : body.flatMap((s) => definitionsIn(s).loops)

/** Buffers that statements allocate, by name. */
export const allocations = (body: Body): ReadonlyMap<string, Buffer> =>
  new Map(body.flatMap((s) => [...definitionsIn(s).allocs]))

export interface Found {
  readonly loop: For
  /** The loops around it, outermost first. */
  readonly path: readonly For[]
  /** The body it stands in, and where. */
  readonly siblings: Body
  readonly index: number
}

/** Where a loop stands, by its variable: a step asks of one several times, of as many nests as there are. */
const holders = remembered((_: Body): Map<string, number> => new Map())

/** The statement that the loop stands in. No two loops have one variable. */
function holderOf(body: Body, name: string): number {
  const known = holders(body)
  let at = known.get(name)
  if (at === undefined) {
    for (at = body.length - 1; at >= 0; at--) if (definitionsIn(body[at]!).vars.has(name)) break
    known.set(name, at)
  }
  return at
}

/** The loop with this variable. */
export function findLoop(body: Body, name: string): Found | undefined {
  const at = holderOf(body, name)
  return at < 0 ? undefined : foundIn(body, at, name, [])
}

function foundIn(body: Body, from: number, name: string, path: readonly For[]): Found | undefined {
  for (let index = from; index < body.length; index++) {
    const s = body[index]!
    if (s.kind === 'for' && s.var === name) return { loop: s, path, siblings: body, index }
    const inner = s.kind === 'for' ? [...path, s] : path
    for (const b of bodiesOf(s)) {
      const found = foundIn(b, 0, name, inner)
      if (found) return found
    }
  }
  return undefined
}

/** Replaces the loop with this variable by what `f` makes of it. */
export function replaceLoop(body: Body, name: string, f: (loop: For) => Stmt | Body): Body {
  const at = holderOf(body, name)
  const replaced = at < 0 ? undefined : replacedIn(body[at]!, name, f)
  invariant(replaced, () => `no loop ${name}`)
  return replacedAt(body, at, replaced)
}

/** What stands in the place of a statement once the loop in it is replaced; nothing where it holds none. */
function replacedIn(s: Stmt, name: string, f: (loop: For) => Stmt | Body): Body | undefined {
  if (s.kind === 'for' && s.var === name) {
    const by = f(s)
    return Array.isArray(by) ? (by as Body) : [by as Stmt]
  }
  const bodies = bodiesOf(s)
  for (const [k, body] of bodies.entries())
    for (let at = 0; at < body.length; at++) {
      const inside = replacedIn(body[at]!, name, f)
      if (inside)
        return [
          withBodies(
            s,
            bodies.map((b, j) => (j === k ? replacedAt(body, at, inside) : b)),
          ),
        ]
    }
  return undefined
}
