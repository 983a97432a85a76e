/**
 * Elaboration: the names of a program are resolved, expressions are typed, and declarations are checked. AST → Stage I.
 */
import { nearest } from '../ast/diagnostics/suggest.ts'
import { type Program, type Scope, scopeOf } from '../ast/imports/linked-program.ts'
import { resolvePath } from '../ast/imports/resolve-path.ts'
import type * as Ast from '../ast/nodes/nodes.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import type { AnyFormat } from '../ir/formats/format.ts'
import type { Instr, Memory } from '../ir/instructions/instr.ts'
import { getOrAdd } from '../ir/memoize.ts'
import type { Monoid } from '../ir/values/monoid.ts'
import { elaborateChoice } from './choices/choices.ts'
import { collectErrors, currentErrors, report, reportAll, reportingTo, throwErrors } from './diagnostics.ts'
import { declarationIn, type FindFormat, formatNamed } from './formats/format-uses.ts'
import { elaborateFormat } from './formats/formats.ts'
import { constantArguments, type Family, familyOf, type Values } from './instructions/instances.ts'
import { elaborateInstr, type FindMemory } from './instructions/instrs.ts'
import { elaborateMemory } from './instructions/memories.ts'
import { declaredGradients, deriveDeclared, gradientText } from './kernels/declared-gradients.ts'
import { instantiateKernels, type TypedKernel } from './kernels/kernel-instances.ts'
import { elaborateKernel } from './kernels/kernels.ts'
import { elaborateMonoid } from './kernels/monoids.ts'
import { scheduleOfSteps, schedulesIn } from './schedules/callee-schedules.ts'
import type { Resolve } from './schedules/resolve.ts'
import { elaborateSchedule } from './schedules/schedule-declarations.ts'
import type { Choice, Schedule } from './schedules/schedule-types.ts'
import type { Space } from './spaces/space-types.ts'
import { elaborateSpace } from './spaces/spaces.ts'

export type { AxisStatistic, DeviceQuestion, Statistic } from './choices/choice-names.ts'
export { parseFormatExpression } from './formats/format-expressions.ts'
export { type Argument, constantArguments, type Family } from './instructions/instances.ts'
export { instanceName } from './kernels/kernel-types.ts'
export type {
  Branch,
  Choice,
  Condition,
  Schedule,
  ScheduleCall,
} from './schedules/schedule-types.ts'
export { isEmpty as isEmptySpace, refuseOthers, soleUse } from './spaces/space-points.ts'
export { isNested, type Space, type SpaceStep } from './spaces/space-types.ts'
export type { SpacePoint, SpaceUse } from './spaces/space-values.ts'
export { Walk as SpaceWalk } from './spaces/space-walk.ts'

/** The declarations that the entry file can name, under their names there. */
export interface Elaborated {
  readonly kernels: ReadonlyMap<string, Kernel1>
  readonly typed: ReadonlyMap<string, TypedKernel>
  /** Declarations of names for which several imported files have kernels; `kernels` does not contain them. */
  readonly ambiguous: ReadonlyMap<string, readonly Ast.Decl[]>
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly monoids: ReadonlyMap<string, Monoid>
  readonly memories: ReadonlyMap<string, Family<Memory>>
  readonly instrs: ReadonlyMap<string, Family<Instr>>
  /** Schedules by kernel, then by name. */
  readonly schedules: ReadonlyMap<string, ReadonlyMap<string, Schedule>>
  /** Choices, which dispatch when data are bound, by kernel, then by name. */
  readonly choices: ReadonlyMap<string, ReadonlyMap<string, Choice>>
  /** Search spaces by kernel, then by name. */
  readonly spaces: ReadonlyMap<string, ReadonlyMap<string, Space>>
  readonly named: Named
  /** A schedule of a kernel with the given steps, over the names of the entry file. @throws SptError with every error found */
  readonly scheduleWith: (kernel: string, steps: readonly Ast.Step[]) => Schedule
}

/** Memories and instructions in the entry file, or in declarations that it can name, wherever they are declared. */
export interface Named {
  readonly memories: ReadonlySet<Family<Memory>>
  readonly instrs: ReadonlySet<Family<Instr>>
}

/**
 * Memoises the result of each declaration, so that several uses give one result. Its errors are reported to the whole
 * elaboration, because uses in trials would discard them, and to every use, so that none takes it for a valid one. `all`
 * collects the results without errors.
 */
function memo<K extends object, V extends NonNullable<unknown> | null>(
  make: (key: K) => V,
  all?: Set<NonNullable<V>>,
): (key: K) => V {
  const done = new Map<K, ReturnType<typeof collectErrors<V>>>()
  const whole = currentErrors()
  return (key) => {
    const { result, errors } = getOrAdd(done, key, () => collectErrors(() => make(key)))
    reportingTo(whole, () => reportAll(...errors))
    reportAll(...errors)
    if (result) all?.add(result)
    return result
  }
}

/**
 * Results of declarations without errors: programs import the same files, whose syntax trees are cached. The result for
 * an instruction depends on the memories that its file names.
 */
const memoryFamilies = new WeakMap<Ast.Memory, Family<Memory>>()
const instrFamilies = new WeakMap<
  Ast.Instr,
  { readonly memories: Scope['memories']; readonly family: Family<Instr> }
>()

const sameEntries = <V>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>): boolean =>
  a.size === b.size && [...a].every(([name, v]) => b.get(name) === v)

/**
 * Elaborates all kernels, formats, monoids and schedules that the entry file declares or imports. Throws an `SptError`
 * with every error found (`check/…`).
 */
export const elaborate = (linked: Program): Elaborated => throwErrors(() => elaborated(linked))

function elaborated(linked: Program): Elaborated {
  const monoidOf = memo(elaborateMonoid)
  const monoidIn =
    ({ scopes }: Program) =>
    (id: Ast.Ident): Monoid | null => {
      // A statement may belong to the base of the kernel, in another file.
      const scope = scopes.get(id.span.source) ?? linked
      const decl = declarationIn(scope.monoids, id, scope, () => ({
        code: 'check/unknown-reducer',
        message: `there is no reducer ${id.name}`,
        span: id.span,
        expected: '+ * min max and or, or the name of a monoid',
        lookup: { name: id.name, candidates: ['min', 'max', 'and', 'or', ...scope.monoids.keys()] },
      }))
      return decl && monoidOf(decl)
    }
  const { program, typed, ownerOf } = instantiateKernels(linked, (g, of, within) => {
    const source = elaborateKernel(of.name.name, of, monoidIn(within))
    const derived = source && deriveDeclared(source, g.gradient!, g.name.name)
    return derived && gradientText(derived, g)
  })
  // Formats that are being elaborated, which a composition must not name.
  const open: Ast.Format[] = []
  const formatOf = memo((f: Ast.Format): AnyFormat | null => {
    open.push(f)
    const made = elaborateFormat(f, formatIn(scopeOf(program, f)))
    open.pop()
    return made
  })
  const formatIn =
    (scope: Scope): FindFormat =>
    (name) => {
      const decl = formatNamed(name, scope)
      if (!decl || !open.includes(decl)) return decl && formatOf(decl)
      return report('check/format-cycle', name.span, {
        message: `format ${decl.name.name} is made of itself${open.at(-1) === decl ? '' : `, through ${open.at(-1)!.name.name}`}`,
        expected: 'formats that end in descriptions',
      })
    }
  const kernelNames = new Map([...program.kernels].map(([name, k]) => [k, name]))
  const gradientOf = declaredGradients(
    (k) => scopeOf(program, k),
    ({ name, span }, { kernels }) =>
      !kernels.has(name) && linked.scopes.get(span.source)?.kernels.get(name)?.typeParams.length === 0,
    (k) => kernelOf(k),
  )
  const kernelOf: (k: Ast.Kernel) => Kernel1 | null = memo((k: Ast.Kernel): Kernel1 | null => {
    if (k.gradient) return gradientOf(k, k.gradient, kernelNames.get(k) ?? k.name.name)
    return elaborateKernel(kernelNames.get(k) ?? k.name.name, k, monoidIn(program))
  })
  const named = { memories: new Set<Family<Memory>>(), instrs: new Set<Family<Instr>>() }
  const memoryOf = memo((m: Ast.Memory) => {
    const before = memoryFamilies.get(m)
    if (before) return before
    const family = familyOf(m, elaborateMemory)
    if (family) memoryFamilies.set(m, family)
    return family
  }, named.memories)
  const declared =
    <D>(decls: (s: Scope) => ReadonlyMap<string, D>, what: string, scope: Scope) =>
    (id: Ast.Ident, more: readonly string[] = []): D | null =>
      declarationIn(decls(scope), id, scope, () => {
        const candidates = [...more, ...decls(scope).keys()]
        return {
          code: `check/unknown-${what}`,
          message: `there is no ${what} ${id.name}`,
          span: id.span,
          lookup: { name: id.name, candidates },
          ...(nearest(id.name, candidates).length === 0 && {
            hint: `import the file that declares ${id.name}`,
          }),
        }
      })
  const memoriesIn = (scope: Scope) => {
    const find = declared((s) => s.memories, 'memory', scope)
    return (id: Ast.Ident, more: readonly string[]): Family<Memory> | null => {
      const decl = find(id, more)
      return decl && memoryOf(decl)
    }
  }
  const memoryIn =
    (scope: Scope): FindMemory =>
    (use, more) => {
      const family = memoriesIn(scope)(use.name, more)
      const args = family && constantArguments(use, family)
      return args ? family.tryInstantiate(args, use.span) : null
    }
  const instrOf = memo((s: Ast.Instr) => {
    const scope = scopeOf(program, s)
    const { memories } = scope
    const before = instrFamilies.get(s)
    if (before && sameEntries(before.memories, memories)) return before.family
    const make = (own: Ast.Instr, values: Values) => elaborateInstr(own, values, memoryIn(scope))
    const family = familyOf(s, make)
    if (family) instrFamilies.set(s, { memories, family })
    return family
  }, named.instrs)
  /** The resolution of names for a schedule, function, dispatch or space; null if its kernel is unknown. */
  const around = (s: Ast.KernelSchedule | Ast.ScheduleFunction): Resolve | null => {
    const scope = scopeOf(program, s)
    const owner = s.kind === 'function' ? undefined : ownerOf(s)
    const decl = owner?.kernel ?? (s.kind === 'function' ? undefined : scope.kernels.get(s.kernel.name))
    if (s.kind !== 'function' && !decl)
      return report('check/unknown-kernel', s.kernel.span, {
        message: `there is no kernel ${s.kernel.name}`,
        lookup: { name: s.kernel.name, candidates: [...scope.kernels.keys()] },
      })
    return {
      schedules:
        s.kind === 'function' ? undefined : (owner?.schedules() ?? scope.schedules.get(s.kernel.name)),
      schedulesOf: schedulesIn(scope),
      functions: scope.functions,
      ambiguous: scope.ambiguous,
      kernel: decl ? kernelOf(decl) : null,
      format: formatIn(scope),
      schedule: scheduleOf,
      space: spaceOf,
      choice: choiceOf,
      extended: (c) => program.extended.get(c),
      tables: (c) =>
        (program.files.get(resolvePath(c.span.source, c.table!.value))?.decls ?? []).filter(
          (d) => d.kind === 'table',
        ),
      memory: memoriesIn(scope),
      instr: (id) => {
        const found = declared((x) => x.instrs, 'instruction', scope)(id)
        return found && instrOf(found)
      },
    }
  }
  /** Elaborates each declaration once for all of its users. Cycles are reported by the callers. */
  const once = <D extends Ast.KernelSchedule | Ast.ScheduleFunction, P, V extends NonNullable<unknown>>(
    make: (d: D, r: Resolve, path: P) => V | null,
  ) => {
    const known = new Map<D, V | null>()
    const errors = currentErrors()
    return (d: D, path: P): V | null =>
      getOrAdd(known, d, () =>
        reportingTo(errors, () => {
          const r = around(d)
          return r && make(d, r, path)
        }),
      )
  }
  const scheduleOf = once(elaborateSchedule)
  const spaceOf = once(elaborateSpace)
  const choiceOf = once(elaborateChoice)
  const all = <D, V>(decls: ReadonlyMap<string, D>, make: (d: D) => V | null): Map<string, V> => {
    const out = new Map<string, V>()
    for (const [name, decl] of decls) {
      const value = make(decl)
      if (value !== null) out.set(name, value)
    }
    return out
  }
  const monoids = all(program.monoids, monoidOf)
  const memories = all(program.memories, memoryOf)
  const instrs = all(program.instrs, instrOf)
  const formats = all(program.formats, formatOf)
  const kernels = all(program.kernels, kernelOf)
  for (const f of program.functions.values()) scheduleOf(f, [])
  const schedules = all(program.schedules, (own) =>
    all(own, (s) => (s.kind === 'schedule' ? scheduleOf(s, []) : null)),
  )
  const choices = all(program.schedules, (own) =>
    all(own, (s) => (s.kind === 'choice' && s.by === 'rules' ? choiceOf(s, []) : null)),
  )
  const spaces = all(program.schedules, (own) =>
    all(own, (s) => (s.kind === 'choice' && s.by === 'search' ? spaceOf(s, []) : null)),
  )
  const ambiguous = new Map(
    [...program.ambiguous].filter(([, decls]) => decls.some((d) => d.kind === 'kernel')),
  )
  const scheduleWith = (kernel: string, steps: readonly Ast.Step[]): Schedule =>
    throwErrors(() => {
      const s = scheduleOfSteps(kernel, steps)
      return elaborateSchedule(s, around(s)!, [])!
    })
  return {
    kernels,
    typed,
    ambiguous,
    formats,
    monoids,
    memories,
    instrs,
    schedules,
    choices,
    spaces,
    named,
    scheduleWith,
  }
}
