/** The members of a called kernel under the caller's names. */
import { operandsOf } from '../../ast/nodes/axis-kinds.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type AnyNode, mapSyntax, walkSyntax } from '../../ast/nodes/walk.ts'
import { axesOf } from './call-unification.ts'

/** The caller's names for names of a callee, by kind. */
export interface CalleeNames {
  readonly axes: ReadonlyMap<string, string>
  readonly buffers: ReadonlyMap<string, string>
  readonly iterations: ReadonlyMap<string, string>
  /** Iterators and `let`s, whose names change only if the caller has a declaration of the name. */
  readonly locals: ReadonlyMap<string, string>
}

/** Every iteration in a part of a kernel, also nested iterations. */
export function iterationsIn(part: unknown): readonly Ast.Iterate[] {
  const all: Ast.Iterate[] = []
  walkSyntax(part, (node) => {
    if (node.kind === 'iterate') all.push(node as Ast.Iterate)
  })
  return all
}

/**
 * The caller's names of a callee: the name that the call passes, otherwise `LABEL_name`.
 *
 * @param own returns an unused name of the caller for a name of the callee
 * @param isTaken returns whether the caller declares a name
 */
export function calleeNames(
  { members }: Ast.Kernel,
  passed: Pick<CalleeNames, 'axes' | 'buffers'>,
  own: (name: string) => string,
  isTaken: (name: string) => boolean,
): CalleeNames {
  const axes = new Map(passed.axes)
  const buffers = new Map(passed.buffers)
  for (const m of members) {
    const { name } = m.kind === 'axis' || m.kind === 'buffer' ? m.name : { name: '' }
    const names = m.kind === 'axis' ? axes : m.kind === 'buffer' ? buffers : null
    if (names && !names.has(name)) names.set(name, own(name))
  }
  const iterations = new Map(iterationsIn(members).map(({ name }) => [name.name, own(name.name)]))
  const locals = new Map<string, string>()
  const local = (name: string, axis?: string): void => {
    // An iterator may have the name of its own axis.
    if (isTaken(name) && (axis === undefined || axes.get(axis) !== name)) locals.set(name, own(name))
  }
  for (const it of iterationsIn(members)) for (const x of it.iters) local(x.name.name, x.axis.name)
  walkSyntax(members, (node) => {
    if (node.kind === 'let') local((node as Ast.Let).name.name)
  })
  return { axes, buffers, iterations, locals }
}

type Scope = ReadonlyMap<string, string>

/** Rewrites members of a callee: names become the caller's, and parameters the caller's expressions. */
export class Renaming {
  readonly #fused: ReadonlyMap<string, readonly Ast.Ident[]>

  constructor(
    callee: Ast.Kernel,
    private readonly names: CalleeNames,
    private readonly values: ReadonlyMap<string, Ast.Expr>,
  ) {
    this.#fused = new Map(
      [...axesOf(callee.members)].flatMap(([name, { def }]) =>
        def.kind === 'fused' ? [[name, def.members]] : [],
      ),
    )
  }

  axis(a: Ast.AxisDecl): Ast.AxisDecl {
    const operands = operandsOf(a.def).map(({ field, kind, value }) => {
      if (kind === 'size') return [field, this.#expr(value, new Map())]
      const names = kind === 'buffer' ? this.names.buffers : this.names.axes
      if (Array.isArray(value)) return [field, value.map((n: Ast.Ident) => renamed(n, names))]
      return [field, value && renamed(value as Ast.Ident, names)]
    })
    return {
      ...a,
      name: renamed(a.name, this.names.axes),
      def: { ...a.def, ...Object.fromEntries(operands) } as Ast.AxisDef,
      packed: this.#expr(a.packed, new Map()),
    }
  }

  buffer(b: Ast.BufferDecl): Ast.BufferDecl {
    return {
      ...b,
      name: renamed(b.name, this.names.buffers),
      axes: b.axes.map((x) => renamed(x, this.names.axes)),
    }
  }

  edge(e: Ast.RoundsEdge, name: string): Ast.RoundsEdge {
    const { axis, flag, counter, own } = e
    return {
      ...e,
      name: { ...e.name, name },
      axis: axis && renamed(axis, this.names.axes),
      flag: flag && renamed(flag, this.names.buffers),
      counter: counter && renamed(counter, this.names.buffers),
      own: own.map((b) => renamed(b, this.names.buffers)),
    }
  }

  iterate(s: Ast.Iterate, outer: Scope = new Map()): Ast.Iterate {
    const scope = new Map(outer)
    const iters = s.iters.map((it): Ast.Iter => {
      for (const m of this.#fused.get(it.axis.name) ?? []) scope.set(m.name, this.names.axes.get(m.name)!)
      const name = renamed(it.name, this.names.locals)
      scope.set(it.name.name, name.name)
      return { ...it, name, axis: renamed(it.axis, this.names.axes) }
    })
    return {
      ...s,
      name: renamed(s.name, this.names.iterations),
      iters,
      where: this.#expr(s.where, scope),
      body: this.#block(s.body, scope),
    }
  }

  #block(body: readonly Ast.Stmt[], outer: Scope): readonly Ast.Stmt[] {
    const scope = new Map(outer)
    return body.map((s): Ast.Stmt => {
      if (s.kind === 'iterate') return this.iterate(s, scope)
      if (s.kind === 'if')
        return {
          ...s,
          cond: this.#expr(s.cond, scope),
          then: this.#block(s.then, scope),
          else: this.#block(s.else, scope),
        }
      if (s.kind !== 'let')
        return { ...s, targets: this.#expr(s.targets, scope), values: this.#expr(s.values, scope) }
      const value = this.#expr(s.value, scope)
      const name = renamed(s.name, this.names.locals)
      scope.set(s.name.name, name.name)
      return { ...s, name, value }
    })
  }

  #expr<T>(part: T, scope: Scope): T {
    const replace = (x: AnyNode): unknown => {
      const node = x as Ast.Expr
      if (node.kind === 'access')
        return {
          ...node,
          buffer: renamed(node.buffer, this.names.buffers),
          index: this.#expr(node.index, scope),
        }
      if (node.kind !== 'name') return undefined
      const local = scope.get(node.name)
      if (local !== undefined) return { ...node, name: local }
      return this.values.get(node.name)
    }
    return mapSyntax(part, replace)
  }
}

const renamed = <T extends Ast.Ident>(id: T, names: ReadonlyMap<string, string>): T => {
  const name = names.get(id.name)
  return name === undefined || name === id.name ? id : { ...id, name }
}
