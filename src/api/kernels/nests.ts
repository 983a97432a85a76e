/** The loops of a kernel, and the parts of its tensors, as data: for programs that schedule arbitrary formats. */
import { type LoopRole, rolesIn } from '../../analysis/loops/segmented-loops.ts'
import { useText } from '../../formats/instance/format-arguments.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { labelled } from '../../ir/formats/format-tables.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { printExpr, printMode } from '../../ir/print/print-stage2.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/program.ts'
import { printCoordStep } from '../../schedule/coordinates/steps.ts'
import { type LoopHandle, type LoopRef, loopNames } from '../../schedule/names/kernel-names.ts'
import { axisOf, iterationsOver, loopOver, type StoredPart } from '../../schedule/names/parts.ts'
import { handle, loopName } from '../../schedule/state/state.ts'
import type { LoopStep } from '../../schedule/steps/step-data.ts'
import { ErrorSources } from '../programs/error-sources.ts'

/** A top-level loop nest: one launch, unless it is merged with others. */
export interface Nest {
  /** Name of the iteration, or of the step that created it. */
  readonly name: string
  /** Global buffers that the nest writes, without its local copies. */
  readonly writes: readonly string[]
  /** Loops, outer before inner. */
  readonly loops: readonly NestLoop[]
}

export interface NestLoop {
  /** Name as in steps: with its nest if another loop has the same name. */
  readonly name: string
  /** Handle that stays valid through later steps that rename or nest the loop. */
  readonly handle: LoopRef
  readonly role: LoopRole
  /** Number of iterations, as text over sizes and enclosing loops. */
  readonly extent: string
  /** Number of iterations if constant; otherwise null. */
  readonly constant: number | null
  /** Mode: `serial`, a hardware axis (`block.x`), `unroll(4)`, `vectorize`, … */
  readonly kind: string
  /** Names of the enclosing loops, outermost first. */
  readonly enclosingLoops: readonly string[]
  /** Names of the enclosing loops on which its extent or conditions depend, so it must stay inside them. */
  readonly dependsOn: readonly string[]
}

/** Returns all nests, in execution order. */
export function nestsOf({ body, buffers }: Kernel2, handle: (loop: For) => LoopRef): readonly Nest[] {
  const names = loopNames(body)
  const global = new Set(buffers.map((b) => b.name))
  return Object.freeze(
    body.flatMap((s): Nest[] => {
      if (s.kind !== 'for') return []
      const writes = Object.freeze([...writesOf([s])].filter((b) => global.has(b)))
      return [Object.freeze({ name: s.nest, writes, loops: loopsIn(s, names, handle) })]
    }),
  )
}

function loopsIn(
  top: For,
  names: ReadonlyMap<string, string>,
  handle: (loop: For) => LoopRef,
): readonly NestLoop[] {
  const roles = rolesIn(top)
  const out: NestLoop[] = []
  walkStmts([top], (l, path) => {
    if (l.kind !== 'for') return
    const needed = new Set([l.extent, ...l.guards].flatMap((e) => [...freeVars(e)]))
    const called = (of: readonly For[]) => Object.freeze(of.map((p) => names.get(p.var)!))
    out.push(
      Object.freeze({
        name: names.get(l.var)!,
        handle: handle(l),
        role: roles.get(l.var)!,
        extent: printExpr(l.extent),
        constant: l.extent.kind === 'const' ? l.extent.value : null,
        kind: printMode(l.mode).trim().slice(1) || 'serial',
        enclosingLoops: called(path),
        dependsOn: called(path.filter((p) => needed.has(p.var))),
      }),
    )
  })
  return Object.freeze(out)
}

// Handles of loops: the loop's variable while the coordinates are unchanged, otherwise its iteration and
// name, because steps on coordinates rebuild the loops.

const origins = new WeakMap<LoopHandle, { readonly kernel: Kernel1; readonly name: string }>()

export function handleOf(kernel: Kernel1, { var: variable, nest, name }: For): LoopHandle {
  const made = Object.freeze({ var: variable })
  origins.set(made, { kernel, name: `${nest}.${name}` })
  return made
}

/** Returns the current handle of the same loop. Throws SptError `schedule/unknown-loop` if no loop has its name any more. */
export function currentHandle(of: LoopHandle, { kernel, state }: Compilation): LoopHandle {
  const origin = origins.get(of)
  return !origin || origin.kernel === kernel ? of : handle(state, origin.name)
}

/** The name of the loop as an iterator, for steps on coordinates. */
export const iteratorOf = (of: LoopHandle, c: Compilation): string => loopName(c.state, currentHandle(of, c))

/** One part of a tensor in a composed format: its names, for steps per part. */
export class Part extends ErrorSources {
  /** Label, unique among the parts; empty if there is only one. */
  readonly label: string
  /** Name of the buffer that stores the part. */
  readonly buffer: string
  /** Format of the part with its arguments, as written. */
  readonly format: string
  /** Arguments of the format by their names in the format and in the composition, such as `p.constants.width`. */
  readonly constants: Readonly<Record<string, number>>
  readonly sources: Sources
  readonly #part: StoredPart
  readonly #kernel: Kernel1

  /** @internal */
  constructor(kernel: Kernel1, part: StoredPart, sources: Sources) {
    super()
    this.sources = sources
    const { label, buffer, formats } = part
    this.label = label
    this.buffer = buffer
    this.format = formats[0]!.text
    this.constants = Object.fromEntries(formats.toReversed().flatMap((f) => [...f.constants]))
    this.#part = part
    this.#kernel = kernel
  }

  /** Returns `name_label`, the name of the part's copy, for names of loops and buffers that steps create. */
  name(name: string): string {
    return labelled(name, this.label)
  }

  /**
   * Returns a loop of the part by the format's name of its axis, or by another iterator (`f`) if only one iteration of the part has it.
   * Otherwise, returns a loop that a step created under `name(…)`.
   */
  loop(name: string): string {
    const axis = axisOf(this.#part, this.#kernel, name)
    if (axis !== undefined) return loopOver(this.#part, this.#kernel, axis)
    const having = iterationsOver(this.#part, this.#kernel).filter((it) =>
      it.iters.some((x) => x.name === name),
    )
    return having.length === 1 ? `${having[0]!.name}.${name}` : this.name(name)
  }

  /** Name of the part's copy of an iteration. */
  nest(name: string): string {
    return this.name(name)
  }
}

/** A step in JSON; formats are given by name or source. */
export type TraceStep =
  | {
      readonly kind: 'as'
      readonly buffer: string
      readonly format: string
      readonly args: readonly (number | string)[]
      readonly live?: 'live' | 'live in place' | undefined
      readonly capacity?: Expr | readonly Expr[] | undefined
      readonly total?: Expr | readonly Expr[] | undefined
      readonly for?: readonly string[] | undefined
    }
  | { readonly kind: 'coords'; readonly step: object }
  | { readonly kind: 'loops'; readonly step: LoopStep }

const roomText = (x: Expr | readonly Expr[]): string =>
  'kind' in x ? printExpr1(x) : `(${x.map((e) => printExpr1(e)).join(', ')})`

export const printedSteps = (c: Compilation): string[] => c.inOrder(printedCoordSteps(c), c.printedLoopSteps)

/** The steps on coordinates in `.spt`, which determine storage. */
export function printedCoordSteps(c: Compilation): string[] {
  let applied = 0
  return c.coordSteps.map((s) => {
    if (s.kind !== 'as') return printCoordStep(s)
    // A format built at run time is not among the kernel's formats.
    const format = s.live ? useText(s.format, s.args) : c.kernel.reformats[applied++]!.format
    const capacity = s.capacity ? ` capacity ${roomText(s.capacity)}` : ''
    const total = s.total ? ` capacity ${roomText(s.total)} in all` : ''
    const carried = s.for?.length ? ` for ${s.for.join(', ')}` : ''
    return `${s.buffer} as ${format}${s.live ? ` ${s.live}${capacity}${total}` : ''}${carried}`
  })
}

export function traceOf(c: Compilation): TraceStep[] {
  const coords = c.coordSteps.map(
    ({ span: _, ...step }): TraceStep =>
      step.kind === 'as' ? { ...step, format: step.format.name } : { kind: 'coords', step },
  )
  const loops = c.loopSteps.map(
    ({ span: _, ...step }): TraceStep => ({ kind: 'loops', step: step as LoopStep }),
  )
  return c.inOrder(coords, loops)
}
