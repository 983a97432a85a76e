import type * as Ast from '../../ast/nodes/nodes.ts'
import { mayDeriveFrom, mayNameAxisArray } from '../../ir/coordinates/derived-names.ts'
import type { AnyFormat, FormatParam } from '../../ir/formats/format.ts'
import { tablesOf } from '../../ir/formats/format-tables.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import { anotherMeaning, report } from '../diagnostics.ts'
import { composeInPlace, singleUse } from '../formats/format-expressions.ts'
import { checkArguments, formatArguments, inOrder } from '../formats/format-uses.ts'
import { type Family, instanceArguments } from '../instructions/instances.ts'
import { findCallees } from './callee-schedules.ts'
import type { OfSteps, Resolve } from './resolve.ts'
import { argumentOver, parameters, type ScheduleParam } from './schedule-params.ts'
import type { AppliedFormat, CalleeSchedule, Schedule } from './schedule-types.ts'
import { argumentValue, findSchedule } from './uses.ts'

/** Memories that need no declaration. */
const PLAIN = ['shared', 'register']

/** Resolves the names in steps, in order, because steps may name results of earlier ones. */
export class StepWalk {
  readonly formats = new Map<Ast.AsStep, AppliedFormat>()
  readonly uses = new Map<string, Schedule>()
  readonly calls = new Map<Ast.Ident, readonly CalleeSchedule[]>()
  readonly memories = new Map<string, Family<Memory>>()
  readonly instrs = new Map<string, Family<Instr>>()
  /** New names of the steps. */
  readonly made = new Set<string>()
  /** New buffers, and results of functions, which may be buffers. */
  readonly #buffers = new Set<string>()
  readonly #tables = new Set<string>()
  readonly #params: ReadonlySet<string>
  readonly #kinds: ReadonlyMap<string, Ast.ParamKind>

  constructor(
    private readonly s: OfSteps,
    private readonly r: Resolve,
    private readonly path: readonly OfSteps[],
    params: readonly Pick<ScheduleParam, 'name' | 'kind'>[],
  ) {
    this.#params = new Set(params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])))
    this.#kinds = new Map(params.map((p) => [p.name, p.kind]))
  }

  /** Resolves a list of steps. `parts` has the names that enclosing `each part` steps give. */
  steps(list: readonly Ast.Step[], parts: readonly string[]): void {
    for (const step of list) this.#step(step, parts)
  }

  #step(step: Ast.Step, parts: readonly string[]): void {
    if (step.kind === 'step') {
      const values = valuesIn(step.args)
      for (const v of values) if (v.kind === 'integer') this.#number(v.value, 'integer', parts)
      for (const v of values) this.#value(v, parts)
      return
    }
    if (step.kind === 'use') {
      this.#use(step, parts)
      return
    }
    this.#checkBuffer(step.buffer, parts)
    if (step.kind === 'as') this.#apply(step, parts)
    if (step.kind === 'as') for (const e of step.live?.capacity?.positions ?? []) this.#ofSizes(e, parts)
    if (step.kind === 'each') this.#each(step, parts)
  }

  #use(step: Ast.UseStep, parts: readonly string[]): void {
    if (step.kernel) {
      this.#useOfCallee({ ...step, kernel: step.kernel }, parts)
      return
    }
    const used = findSchedule(this.s, step, this.r, [...this.path, this.s])
    if (!used) return
    this.uses.set(step.schedule.name, used)
    const args = inOrder(step.args, used.params)
    used.params.forEach((p, k) => {
      const value = args[k] && argumentValue(args[k].value, p, used.name, this.#kinds)
      if (value) this.#value(value, parts)
      if (value?.kind === 'integer') this.#number(value.value, 'integer', parts)
    })
    for (const { name } of step.results) {
      this.made.add(name)
      this.#buffers.add(name)
    }
  }

  #useOfCallee(use: Ast.UseStep & { readonly kernel: Ast.Ident }, parts: readonly string[]): void {
    if (parts.length > 0 || this.s.kind === 'function') {
      report('schedule/callee', use.span, {
        message: `${use.kernel.name}.${use.schedule.name} is a schedule of a called kernel`,
        expected: `\`use ${use.kernel.name}.${use.schedule.name}\` as a step of a schedule of the kernel that calls`,
        hint: 'move the step out of the block or function',
      })
      return
    }
    const callees = findCallees(this.s, use, this.r, [...this.path, this.s])
    if (!callees) return
    this.calls.set(use.schedule, callees)
    for (const [k, c] of callees.entries())
      this.uses.set(`${use.kernel.name}.${use.schedule.name} ${k}`, c.schedule)
    for (const { value } of use.args) if (value.kind !== 'group') this.#number(value, 'integer', parts)
  }

  /** Resolves the name in a value. Loops and loop nests of kernels are resolved when the steps are applied. */
  #value(v: Ast.StepValue, parts: readonly string[]): void {
    if (v.kind === 'loop' || v.kind === 'binding') this.#checkLoop(v.loop, parts)
    if (v.kind === 'name' && v.of === 'nest' && this.s.kind === 'function')
      this.#checkOwn(v.name, 'nest', parts)
    if (v.kind === 'name' && v.of === 'buffer') this.#checkBuffer(v.name, parts)
    if (v.kind === 'name' && v.of === 'new buffer') this.#buffers.add(v.name.name)
    if (v.kind === 'name' && v.of.startsWith('new ')) this.made.add(v.name.name)
    if (v.kind === 'name' && v.of === 'size') this.#checkSize(v.name)
    if (v.kind !== 'instance') return
    const { name, args, span } = v.use
    if (this.#kinds.get(name.name) === v.of) {
      checkArguments(`parameter ${name.name}`, args.length, [], span)
      return
    }
    if (v.of === 'instr') {
      const instr = this.r.instr(name)
      if (instr && this.#instance(v.use, instr, parts)) this.instrs.set(name.name, instr)
      return
    }
    const plain = PLAIN.includes(name.name)
    if (plain) checkArguments(name.name, args.length, [], span)
    const memory = plain ? null : this.r.memory(name, PLAIN)
    if (memory && this.#instance(v.use, memory, parts)) this.memories.set(name.name, memory)
  }

  /** Reports a loop in a function that is neither a parameter nor made by a step, and whose loop nest is neither. */
  #checkLoop(loop: Ast.LoopRef, parts: readonly string[]): void {
    if (this.s.kind !== 'function') return
    if (loop.nest) this.#checkOwn(loop.nest, 'nest', parts)
    else this.#checkOwn(loop.name, 'loop', parts)
  }

  #checkOwn({ name, span }: Ast.Ident, kind: 'loop' | 'nest' | 'buffer', parts: readonly string[]): void {
    const given = this.#kinds.get(name)
    // A copy is a buffer and a loop nest of the same name.
    const fits = given === kind || (kind !== 'loop' && (given === 'nest' || given === 'buffer'))
    if (fits || this.made.has(name) || parts.includes(name)) return
    const own = [...this.#kinds].flatMap(([n, k]) => (k === kind ? [n] : []))
    report('check/unknown-name', span, {
      message: `function ${this.s.name.name} has no ${kind} ${name}`,
      expected: `a parameter of kind ${kind}, or a new name of an earlier step`,
      lookup: { name, candidates: [...own, ...this.made] },
      hint: `declare the parameter \`${name}: ${kind}\``,
    })
  }

  /** The value of a numeric argument; null if the value depends on parameters, and after a reported error. */
  #number(e: Ast.Expr, kind: 'integer' | 'real', parts: readonly string[]): number | null {
    const names = parameters(this.#params, 'the parameters of the schedule', parts)
    const x = argumentOver(names, e, kind)
    return x?.kind === 'const' ? x.value : null
  }

  #ofSizes(e: Ast.Expr, parts: readonly string[]): void {
    const { kernel } = this.r
    const sizes = kernel?.params.flatMap((p) => (p.kind === 'size' ? [p.name] : [])) ?? []
    const what = 'sizes of the kernel and parameters of the schedule'
    argumentOver(parameters(new Set([...this.#params, ...sizes]), what, parts), e, 'integer')
  }

  /** True if the arguments are valid. Constant arguments are checked by creating the instance. */
  #instance(use: Ast.Instance, family: Family<unknown>, parts: readonly string[]): boolean {
    const isType = (name: string): boolean => this.#kinds.get(name) === 'type'
    const args = instanceArguments(use, family, (e) => this.#number(e, 'integer', parts), isType)
    if (!args?.every((a) => a !== null)) return args !== null
    return family.tryInstantiate(args, use.span) !== null
  }

  /**
   * Reports a parameter in place of a size of the kernel: in all other places, the name means the parameter's value.
   */
  #checkSize(name: Ast.Ident): void {
    if (this.s.kind === 'function')
      report('check/unknown-name', name.span, {
        message: `function ${this.s.name.name} cannot require ${name.name}, a size of a kernel`,
        hint: 'move `require` to the schedule that uses the function',
      })
    if (!this.#params.has(name.name)) return
    report('check/duplicate', name.span, {
      message: `${name.name} is a parameter of schedule ${this.s.name.name}, and must be a size of the kernel here`,
      expected: 'a size of the kernel, of another name than the parameters',
      hint: 'rename the parameter; the argument is checked as `require SIZE == PARAMETER`',
    })
  }

  #checkBuffer(name: Ast.Ident, parts: readonly string[]): void {
    const { kernel } = this.r
    if (this.s.kind === 'function') this.#checkOwn(name, 'buffer', parts)
    if (!kernel || this.#buffers.has(name.name) || parts.includes(name.name)) return
    // Members of calls are resolved when the steps are applied.
    if (name.name.includes('.')) return
    const candidates = [...kernel.buffers.map((b) => b.name), ...this.#buffers, ...this.#tables]
    // Other schedules and callers may have stored the tensor before: in parts, over axes of a format, or in a format
    // built at run time.
    const isMade = [...kernel.buffers.map((b) => b.name), ...this.#tables].some((of) =>
      mayDeriveFrom(name.name, of),
    )
    if (candidates.includes(name.name) || isMade || mayNameAxisArray(name.name)) return
    report('check/unknown-buffer', name.span, {
      message: `kernel ${kernel.name} has no buffer ${name.name}`,
      lookup: { name: name.name, candidates },
    })
  }

  /**
   * Records the tables of a format's sorts: later steps may name these tables, because they can be cached like other
   * buffers.
   */
  #readAhead(format: AnyFormat): void {
    for (const table of tablesOf(format)) this.#tables.add(table)
  }

  #each(step: Ast.EachStep, parts: readonly string[]): void {
    const { name } = step.as
    if (this.#kinds.has(name) || parts.includes(name))
      anotherMeaning(step.as, `schedule ${this.s.name.name}`, 'choose another name for the part')
    if (step.what === 'part') this.steps(step.steps, [...parts, name])
    else this.#eachNest(step, parts)
  }

  /**
   * Resolves a block for each loop nest. The block may have steps on loops only: other steps concern the kernel, or all
   * loop nests.
   */
  #eachNest(step: Ast.EachStep, parts: readonly string[]): void {
    if (parts.length > 0)
      report('check/nest-in-part', step.span, {
        message: `the loop nests that write ${step.buffer.name} belong to every part`,
        expected: 'each nest of … as … outside of each part of …',
        hint: 'move `each nest` out of the block',
      })
    for (const s of step.steps) {
      if (s.kind === 'step') this.#step(s, parts)
      else
        report('check/step-in-nest', s.span, {
          message: 'each nest contains only steps on loops',
          expected: 'split, reorder, bind, …',
          hint: 'move the step before or after the block',
        })
    }
  }

  #apply(step: Ast.AsStep, parts: readonly string[]): void {
    const { format: find } = this.r
    const single = singleUse(step.parts)
    if (!single) {
      const constant = (name: string): boolean =>
        this.#params.has(name) || parts.some((p) => name.startsWith(`${p}.`))
      const made = composeInPlace(step.parts, constant, find)
      if (made) {
        this.formats.set(step, made)
        this.#readAhead(made.format)
      }
      return
    }
    const format = find(single.format)
    if (!format) return
    const number = (e: Ast.Expr, { kind }: FormatParam): Ast.Expr => {
      this.#number(e, kind === 'real' ? 'real' : 'integer', parts)
      return e
    }
    const args = formatArguments(single, format, number)
    if (args) this.formats.set(step, { format, args })
    this.#readAhead(format)
  }
}

const valuesIn = (args: readonly Ast.StepArgument[]): readonly Ast.StepValue[] =>
  args.flatMap((a) => (typeof a === 'string' ? [] : a.value.kind === 'list' ? a.value.items : [a.value]))
