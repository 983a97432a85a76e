/**
 * Monomorphisation: kernels with type parameters, with definitions, with calls, or that extend other kernels are replaced
 * by plain kernels, with schedules of their own. Later stages receive plain kernels only.
 */
import { type Program, type Scope, scopeOf } from '../../ast/imports/linked-program.ts'
import { lazy } from '../../ast/lazy.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { errorCount, report } from '../diagnostics.ts'
import { declarationIn } from '../formats/format-uses.ts'
import { filled, type Values } from '../instructions/instances.ts'
import type { GradientText } from './declared-gradients.ts'
import { type FindCallee, hasCalls, withCalls } from './kernel-calls.ts'
import { isDefine, mergedDefinitions, withDefinitions } from './kernel-definitions.ts'
import {
  allTypes,
  checkTypeParameters,
  checkTypes,
  firstTypes,
  instanceName,
  typesFor,
} from './kernel-types.ts'

/** A kernel with type parameters, for the entry file. */
export interface TypedKernel {
  readonly params: readonly { readonly name: string; readonly types: readonly string[] }[]
  /** The instance for the first type of each parameter. */
  readonly first: string
}

export interface Instances {
  /** The program with instances in place of their declarations. */
  readonly program: Program
  /** The kernels with type parameters that the entry file can name. */
  readonly typed: ReadonlyMap<string, TypedKernel>
  /** The kernel of a schedule, and the schedules in scope; null for plain kernels. */
  readonly ownerOf: (s: Ast.KernelSchedule) => Owner | null
}

interface Owner {
  readonly kernel: Ast.Kernel
  readonly schedules: () => ReadonlyMap<string, Ast.KernelSchedule>
}

/** A list of types of a kernel, or a plain kernel. */
interface Instance {
  readonly origin: Ast.Kernel
  readonly values: Values
  readonly base: Instance | null
  readonly members: readonly Ast.Member[]
  readonly definitions: readonly Ast.Define[]
  readonly kernel: Ast.Kernel
}

const isStatement = (m: Ast.Member): boolean =>
  m.kind === 'iterate' || m.kind === 'kernel_call' || m.kind === 'copies' || m.kind === 'rounds'

const isPlain = (k: Ast.Kernel): boolean =>
  k.typeParams.length === 0 && k.base === null && !k.members.some(isDefine) && !hasCalls(k)

/** Derives a declared gradient of a kernel, whose reducers are in the scopes of the program. */
type Derive = (gradient: Ast.Kernel, of: Ast.Kernel, program: Program) => GradientText | null

/** The instances of a program's kernels. Reports errors in heads of kernels and schedules. */
export function instantiateKernels(program: Program, derive: Derive): Instances {
  const isUntyped = (scope: Scope): boolean =>
    [...scope.kernels.values()].every(isPlain) &&
    [...scope.schedules.values()].every((own) => [...own.values()].every((s) => s.types.length === 0))
  if ([...program.scopes.values()].every(isUntyped)) return { program, typed: new Map(), ownerOf: () => null }
  return new Instantiation(program, derive).run()
}

class Instantiation {
  readonly #made = new Map<Ast.Kernel, Map<string, Instance | null>>()
  readonly #copies = new Map<Instance, Map<Ast.KernelSchedule, Ast.KernelSchedule>>()
  readonly #owners = new Map<Ast.KernelSchedule, Owner>()
  readonly #extended: Map<Ast.Dispatch, Ast.Dispatch>
  readonly #gradients = new Map<Ast.Kernel, GradientText | null>()

  constructor(
    private readonly program: Program,
    private readonly derive: Derive,
  ) {
    this.#extended = new Map(program.extended)
  }

  run(): Instances {
    const scopes = new Map(
      [...this.program.scopes].map(([path, scope]) => [path, this.#scope(path, scope)] as const),
    )
    const typed = [...this.program.kernels].flatMap(([name, k]): [string, TypedKernel][] => {
      const params = k.typeParams.map((p) => ({ name: p.name.name, types: p.types.map((t) => t.name) }))
      return params.length > 0 ? [[name, { params, first: instanceName(name, firstTypes(k)) }]] : []
    })
    const entry = scopes.get(this.program.entry)!
    const program = this.#withGradients(scopes)
    return {
      program: { ...program, ...entry, extended: this.#extended },
      typed: new Map(typed),
      ownerOf: (s) => this.#owners.get(s) ?? null,
    }
  }

  #scope(path: string, scope: Scope): Scope {
    const kernels = new Map<string, Ast.Kernel>()
    const schedules = new Map<string, ReadonlyMap<string, Ast.KernelSchedule>>()
    for (const [local, decl] of scope.kernels) {
      const declared = [...(scope.schedules.get(local)?.values() ?? [])]
      for (const s of declared) if (s.span.source === path) checkTypes(s.types, decl, s.kernel.span)
      if (!checkTypeParameters(decl)) continue
      for (const types of allTypes(decl)) {
        const instance = this.#instance(decl, types, [])
        if (!instance) continue
        kernels.set(instanceName(local, types), instance.kernel)
        schedules.set(instanceName(local, types), this.#schedules(path, instance))
      }
    }
    return { ...scope, kernels, schedules }
  }

  /** An instance. @param open kernels whose bases are being resolved */
  #instance(decl: Ast.Kernel, types: readonly string[], open: readonly Ast.Kernel[]): Instance | null {
    const made = getOrAdd(this.#made, decl, () => new Map<string, Instance | null>())
    return getOrAdd(made, types.join(), () => this.#make(decl, types, [...open, decl]))
  }

  #make(decl: Ast.Kernel, types: readonly string[], open: readonly Ast.Kernel[]): Instance | null {
    const values = new Map(decl.typeParams.map((p, k) => [p.name.name, types[k]!])) as Values
    if (isPlain(decl))
      return {
        origin: decl,
        values,
        base: null,
        members: decl.members,
        definitions: [],
        kernel: decl,
      }
    const own = filled(decl, values)
    const base = own.base && this.#base(own, own.base, open)
    if (own.base && !base) return null
    const inherited = base?.members ?? []
    const members = [
      ...inherited.filter((m) => !isStatement(m)),
      ...own.members.filter((m) => !isDefine(m)),
      ...inherited.filter(isStatement),
    ]
    const before = errorCount()
    const definitions = mergedDefinitions(own, base?.definitions ?? null)
    const params = [...(base?.kernel.params ?? []), ...decl.params.map((p) => filled(p, values))]
    const called: Ast.Kernel = {
      ...own,
      name: { ...decl.name, name: instanceName(decl.name.name, types) },
      typeParams: [],
      params,
      base: null,
      members: withDefinitions(members, definitions, params),
    }
    const expanded =
      hasCalls(called) && errorCount() === before ? withCalls(called, this.#callees(open)) : null
    if (errorCount() > before) return null
    const kernel = expanded ? { ...called, ...expanded } : called
    return { origin: decl, values, base, members, definitions, kernel }
  }

  /** Finds kernels by the names of the file that contains a call. */
  #callees(open: readonly Ast.Kernel[]): FindCallee {
    const scopeAt = ({ span }: Ast.Ident): Scope => this.program.scopes.get(span.source) ?? this.program
    return {
      isKernel: (name) => scopeAt(name).kernels.has(name.name),
      kernel: (name, types, passed) => {
        const decl = this.#kernelNamed(name, scopeAt(name))
        if (!decl) return null
        if (open.includes(decl))
          return report('check/kernel-cycle', name.span, {
            message: `kernel ${decl.name.name} calls itself`,
            labels: open.slice(1).map((k) => ({ span: k.name.span, text: `through kernel ${k.name.name}` })),
            hint: 'remove this call, or another call of the cycle',
          })
        const given = types.length > 0 ? types.map((t) => t.name) : typesFor(decl, passed)
        const fits = checkTypes(
          types.map((t) => [t]),
          decl,
          name.span,
        )
        if (fits && decl.gradient) return this.#gradient(decl, decl.gradient, open)?.kernel ?? null
        return fits ? (this.#instance(decl, given, open)?.kernel ?? null) : null
      },
    }
  }

  /** The derived kernel of a declared gradient, as if the program declared it. */
  #gradient(decl: Ast.Kernel, { of }: Ast.GradientOf, open: readonly Ast.Kernel[]): GradientText | null {
    return getOrAdd(this.#gradients, decl, () => {
      const source = this.#callees([...open, decl]).kernel(of.name, of.types, [])
      return source && this.derive(decl, source, this.#withGradients())
    })
  }

  /** The program with the scopes of derived kernels. */
  #withGradients(scopes = this.program.scopes): Program {
    const made = [...this.#gradients.values()].filter((g) => g !== null)
    const own = made.map(({ kernel, monoids }) => [kernel.span.source, { ...this.program, monoids }] as const)
    return { ...this.program, scopes: new Map([...scopes, ...own]) }
  }

  #kernelNamed(id: Ast.Ident, scope: Scope): Ast.Kernel | null {
    const { name, span } = id
    return declarationIn(scope.kernels, id, scope, () => ({
      code: 'check/unknown-kernel',
      message: `there is no kernel ${name}`,
      span,
      lookup: { name, candidates: [...scope.kernels.keys()] },
    }))
  }

  #base(own: Ast.Kernel, base: Ast.BaseKernel, open: readonly Ast.Kernel[]): Instance | null {
    const { name, span } = base.name
    const decl = this.#kernelNamed(base.name, scopeOf(this.program, own))
    if (!decl) return null
    if (open.includes(decl))
      return report('check/kernel-cycle', span, {
        message: `kernel ${name} extends itself`,
        hint: `remove \`extends ${name}\``,
      })
    const types = base.types.length === 0 ? firstTypes(decl) : base.types.map((t) => t.name)
    const fits = checkTypes(
      base.types.map((t) => [t]),
      decl,
      span,
    )
    return fits ? this.#instance(decl, types, open) : null
  }

  #schedules(path: string, instance: Instance): ReadonlyMap<string, Ast.KernelSchedule> {
    const out = new Map<string, Ast.KernelSchedule>()
    for (const [name, { schedule, of }] of this.#visible(path, instance))
      out.set(name, this.#copy(schedule, of, instance))
    return out
  }

  /**
   * The declared schedules for an instance that a file sees. A schedule for some types replaces a schedule for every
   * type, and a schedule of the kernel replaces a schedule of the base.
   */
  #visible(from: string, instance: Instance): Map<string, { schedule: Ast.KernelSchedule; of: Instance }> {
    const { origin, base } = instance
    // A schedule of the base may be in a file that does not import this kernel; schedules of the kernel's own file still
    // replace the base's there.
    const isNamed = [...(this.program.scopes.get(from)?.kernels.values() ?? [])].includes(origin)
    const path = isNamed ? from : origin.span.source
    const out = base ? this.#visible(path, base) : new Map()
    const declared = [...(this.program.scopes.get(path)?.kernels ?? [])].flatMap(([local, k]) =>
      k === origin ? [...(this.program.scopes.get(path)!.schedules.get(local)?.values() ?? [])] : [],
    )
    for (const schedule of declared)
      if (schedule.types.length === 0) out.set(schedule.name.name, { schedule, of: instance })
    const some = new Map<string, Ast.KernelSchedule>()
    for (const schedule of declared) {
      if (schedule.types.length === 0) continue
      const types = [...instance.values.values()]
      if (!schedule.types.every((list, k) => list.some((t) => t.name === types[k]))) continue
      const first = some.get(schedule.name.name)
      if (first)
        report('check/duplicate', schedule.name.span, {
          message: `two schedules are ${instance.kernel.name.name}.${schedule.name.name}`,
          labels: [{ span: first.name.span, text: 'first here' }],
          hint: `remove ${types.join(', ')} from the types of a schedule`,
        })
      some.set(schedule.name.name, schedule)
      out.set(schedule.name.name, { schedule, of: instance })
    }
    return out
  }

  /** The copy of a schedule for an instance; names have the same meaning as for `of`. */
  #copy<S extends Ast.KernelSchedule>(s: S, of: Instance, instance: Instance): S {
    if (isPlain(instance.origin)) return s
    const copies = getOrAdd(this.#copies, instance, () => new Map<Ast.KernelSchedule, Ast.KernelSchedule>())
    const before = copies.get(s)
    if (before) return before as S
    const copy: S = {
      ...filled(s, of.values),
      params: s.params.map((p) => filled(p, of.values)),
      kernel: { ...s.kernel, name: instance.kernel.name.name },
      types: [],
      ...(s.kind === 'choice' && of !== instance && { inheritedFrom: of.kernel.name.name }),
    }
    copies.set(s, copy)
    for (const { name } of s.params)
      if (of.values.has(name.name))
        report('check/duplicate', name.span, {
          message: `${name.name} is a type of kernel ${of.origin.name.name}`,
          hint: 'rename the parameter',
        })
    const schedules = lazy(() => this.#schedules(s.span.source, instance))
    this.#owners.set(copy, { kernel: instance.kernel, schedules })
    const extended = s.kind === 'choice' && s.by === 'rules' ? this.program.extended.get(s) : undefined
    if (extended) this.#extended.set(copy as Ast.Dispatch, this.#copy(extended, of, instance))
    return copy
  }
}
