/** What the names in a schedule mean: as written, or, inside of `each part of A as p`, those of one part. */
import { fail, type Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { PartInstance } from '../ir/format.ts'
import type { Kernel1, Reformat } from '../ir/stage1.ts'
import { iterationsOf } from './coords/find.ts'

export interface Names {
  loop(r: Ast.LoopRef): string
  /** A nest, by the iteration or the step that made it. */
  nest(name: Ast.Ident): string
  buffer(name: Ast.Ident): string
  /** A name that a step gives to something new. */
  fresh(name: Ast.Ident): string
  /** `p.width` */
  constant(e: Ast.Field): number
}

export const plainNames: Names = {
  loop: (r) => (r.nest ? `${r.nest.name}.${r.name.name}` : r.name.name),
  nest: (name) => name.name,
  buffer: (name) => name.name,
  fresh: (name) => name.name,
  constant: (e) =>
    fail({
      code: 'schedule/argument',
      message: `${e.object.name} is no part`,
      span: e.span,
      expected: 'a constant of a part, inside of each part of … as …',
    }),
}

/** The parts that a buffer is stored in. @throws SptError `schedule/no-parts` */
export function partsOf(
  kernel: Kernel1,
  buffer: { readonly name: string; readonly span?: Span | undefined },
): Reformat {
  const found = kernel.reformats.findLast((r) => r.buffers.some((b) => b.name === buffer.name))
  if (found) return found
  const stored = [...new Set(kernel.reformats.flatMap((r) => r.buffers.map((b) => b.name)))]
  return fail({
    code: 'schedule/no-parts',
    message: `${buffer.name} is in no format that a step gave it`,
    ...(buffer.span && { span: buffer.span }),
    expected: stored.length > 0 ? `one of ${stored.join(', ')}` : `${buffer.name} as … before`,
    ...(stored.length > 0 ? { lookup: { name: buffer.name, candidates: stored } } : {}),
    hint: `write ${buffer.name} as … first`,
  })
}

/** `name_label`, or the name where there is one part. */
export const labelled = (name: string, label: string): string => (label === '' ? name : `${name}_${label}`)

/**
 * Names in one part. `p` is the part's buffer, and what shares its structure keeps its name; `p.io` a loop of it, by the format's name, by one that a step of
 * the block gave, or by that of another iterator where one iteration of the part has it; `sum` and `sum.f` are the
 * part's copy of an iteration and a loop of that. What steps make gets the label at its end.
 */
export class PartNames implements Names {
  readonly #as: string
  readonly #part: PartInstance
  /** The part's copies of the buffers with this structure, by their names before. */
  readonly #buffers: ReadonlyMap<string, string>
  readonly #buffer: string
  readonly #kernel: Kernel1
  readonly #outer: Names
  readonly #made = new Set<string>()

  constructor(step: Ast.EachStep, reformat: Reformat, part: number, kernel: Kernel1, outer: Names) {
    this.#as = step.as.name
    this.#part = reformat.instance.parts[part]!
    this.#buffers = new Map(reformat.buffers.map((b) => [b.name, b.parts[part]!]))
    this.#buffer = this.#buffers.get(step.buffer.name)!
    this.#kernel = kernel
    this.#outer = outer
  }

  loop(r: Ast.LoopRef): string {
    if (r.nest === null) return this.#made.has(r.name.name) ? this.#own(r.name.name) : this.#outer.loop(r)
    const name = this.#loopName(r.name.name)
    if (r.nest.name !== this.#as) {
      const nest = this.nest(r.nest)
      return nest === r.nest.name ? this.#outer.loop(r) : `${nest}.${name ?? r.name.name}`
    }
    if (name !== undefined) return name
    const having = this.#iterations().filter((it) => it.iters.some((x) => x.name === r.name.name))
    return having.length === 1 ? `${having[0]!.name}.${r.name.name}` : r.name.name
  }

  nest(name: Ast.Ident): string {
    const own = this.#own(name.name)
    const copied = iterationsOf(this.#kernel.body).some((it) => it.name === own)
    return copied || this.#made.has(name.name) ? own : this.#outer.nest(name)
  }

  buffer(name: Ast.Ident): string {
    if (name.name === this.#as) return this.#buffer
    if (this.#made.has(name.name)) return this.#own(name.name)
    return this.#buffers.get(name.name) ?? this.#outer.buffer(name)
  }

  fresh(name: Ast.Ident): string {
    this.#made.add(name.name)
    return this.#own(name.name)
  }

  constant(e: Ast.Field): number {
    if (e.object.name !== this.#as) return this.#outer.constant(e)
    const { constants, text } = this.#part.instance
    const value = constants.get(e.field.name)
    if (value !== undefined) return value
    const candidates = [...constants.keys()]
    return fail({
      code: 'schedule/no-constant',
      message: `${text} has no constant ${e.field.name}`,
      span: e.field.span,
      ...(candidates.length > 0 ? { expected: `one of ${candidates.join(', ')}` } : {}),
      lookup: { name: e.field.name, candidates },
    })
  }

  #own(name: string): string {
    return labelled(name, this.#part.label)
  }

  #loopName(name: string): string | undefined {
    return this.#made.has(name) ? this.#own(name) : this.#part.instance.names.get(name)
  }

  /** The iterations over the part. */
  #iterations() {
    const axes = new Set(this.#part.instance.axes.map((a) => a.name))
    return iterationsOf(this.#kernel.body).filter((it) => it.iters.some((x) => axes.has(x.axis)))
  }
}
