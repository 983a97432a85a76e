/**
 * Names inside of `each nest of C as p`: loops by their role in the writes of the loop nest, independent of formats, so
 * that one schedule fits any format.
 */

import { type LoopRole, rolesIn } from '../../analysis/loops/segmented-loops.ts'
import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import type { Names } from './part-names.ts'

/** The roles that may follow `p.`; loops are ordered from the outside in. */
const ROLES: Readonly<Record<string, readonly LoopRole[]>> = {
  rows: ['rows'],
  scatter: ['scatter'],
  parallel: ['rows', 'scatter'],
  contiguous: ['contiguous'],
  reductions: ['reduction'],
}

/** Returns the names of the loop nests that write a buffer, in order. @throws SptError `schedule/no-nest` */
export function nestsWriting(
  { body }: Kernel2,
  buffer: { readonly name: string; readonly span?: Span | undefined },
): readonly string[] {
  const { name } = buffer
  const tops = body.filter((s): s is For => s.kind === 'for')
  const found = tops.filter((s) => writesOf([s]).has(name))
  if (found.length > 0) return [...new Set(found.map((s) => s.nest))]
  const candidates = [...writesOf(tops)]
  return failAt('schedule/no-nest', buffer.span, {
    message: `no loop nest writes ${name}`,
    expected: candidates.length > 0 ? orList(candidates) : 'a kernel with loops',
    lookup: { name, candidates },
  })
}

/**
 * The names in one loop nest: the roles `p.rows`, `p.scatter`, `p.parallel` (both of these), `p.contiguous` and
 * `p.reductions`; a loop by its name (`p.io`); the loop nest (`p`).
 */
export class NestNames implements Names {
  readonly #nest: string
  readonly #loops: readonly For[]
  readonly #roles: ReadonlyMap<string, LoopRole>

  constructor(
    private readonly as: string,
    nest: string,
    now: Kernel2,
    private readonly outer: Names,
    private readonly made: Set<string>,
    /** True if the steps apply to several loop nests: new buffers then have the name of the loop nest as a suffix. */
    private readonly several: boolean,
  ) {
    this.#nest = nest
    const tops = now.body.filter((s): s is For => s.kind === 'for' && s.nest === nest)
    this.#loops = loopsOf(tops)
    this.#roles = new Map(tops.flatMap((t) => [...rolesIn(t)]))
  }

  loop(r: Ast.LoopRef): string {
    const all = this.loops(r)
    if (all.length === 1) return all[0]!
    const role = `${this.as}.${r.name.name}`
    return failAt(all.length === 0 ? 'schedule/no-role' : 'schedule/several-loops', r.span, {
      message:
        all.length === 0
          ? `loop nest ${this.#nest} has no loop that is ${role}`
          : `${role} are ${all.length} loops of loop nest ${this.#nest}: ${all.join(', ')}`,
      expected: 'one loop',
      hint: all.length === 0 ? 'spt show --stage 2 has the loops' : `fuse (${role}) -> one`,
    })
  }

  loops(r: Ast.LoopRef): readonly string[] {
    const { name } = r.name
    if (r.nest === null) return [this.made.has(name) ? this.#own(name) : this.outer.loop(r)]
    if (r.nest.name !== this.as) return [this.outer.loop(r)]
    if (!Object.hasOwn(ROLES, name)) return [this.#own(name)]
    const roles = ROLES[name]!
    return this.#loops.filter((l) => roles.includes(this.#roles.get(l.var)!)).map((l) => this.#own(l.name))
  }

  nest(name: Ast.Ident): string {
    return name.name === this.as ? this.#nest : this.outer.nest(name)
  }

  buffer(name: Ast.Ident): string {
    return this.made.has(name.name) ? this.#ownBuffer(name.name) : this.outer.buffer(name)
  }

  fresh({ name }: Ast.Ident, of: 'new loop' | 'new buffer'): string {
    this.made.add(name)
    return of === 'new loop' ? name : this.#ownBuffer(name)
  }

  constant(e: Ast.Field): number {
    return this.outer.constant(e)
  }

  #own(name: string): string {
    return `${this.#nest}.${name}`
  }

  #ownBuffer(name: string): string {
    return this.several ? `${name}_${this.#nest}` : name
  }
}
