/** Elaboration of search spaces: their decisions, conditions and steps. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { integer } from '../../ast/nodes/syntax-builders.ts'
import { singleUses, writtenOut } from '../../ast/parse/step-groups.ts'
import { printGroup, printParts, printSpaceFile, printStep } from '../../ast/print/print.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { ChoiceNames, decidedParams, refuseMeaning } from '../choices/choice-names.ts'
import { knownStatistics } from '../choices/live-coverage.ts'
import { anotherMeaning, errorCount, report } from '../diagnostics.ts'
import { inOrder } from '../formats/format-uses.ts'
import type { Resolve } from '../schedules/resolve.ts'
import { namesAround } from '../schedules/schedule-declarations.ts'
import { StepWalk } from '../schedules/schedules.ts'
import { checkUse } from '../schedules/uses.ts'
import { refuseUnused, SpaceNumbers } from './space-numbers.ts'
import { isEmpty } from './space-points.ts'
import type { FormatDecision, Option, Space, SpaceStep, StepOption } from './space-types.ts'

/** The elaborated space. @param path the spaces that are being elaborated */
export function elaborateSpace(s: Ast.Space, r: Resolve, path: readonly Ast.Space[]): Space | null {
  const { kernel } = r
  if (!kernel) return null
  const before = errorCount()
  const made = new Elaboration(s, { ...r, kernel }, [...path, s]).space()
  if (errorCount() > before) return null
  refuseUnused(made, s)
  const params = new Map(made.params.map((p) => [p.name, undefined]))
  if (errorCount() === before && isEmpty({ space: made, params, known: () => undefined }))
    report('check/empty-space', s.name.span, {
      message: `no point of ${s.kernel.name}.${s.name.name} meets the conditions`,
      labels: made.conditions.map(({ span }) => ({ span, text: 'must hold' })),
      hint: 'leave out a condition, or give more values',
    })
  return errorCount() > before ? null : made
}

class Elaboration {
  readonly #params: Space['params']
  readonly #decisions: readonly Ast.NumberDecision[]
  readonly #numbers: SpaceNumbers
  readonly #declared: ReadonlyMap<string, Ast.FormatDecision>
  readonly #names: ChoiceNames
  readonly #walk: StepWalk
  /** Names of decisions, and prefixes of nested spaces. */
  readonly #taken: Set<string>

  constructor(
    private readonly s: Ast.Space,
    private readonly r: Resolve & { readonly kernel: Kernel1 },
    private readonly path: readonly Ast.Space[],
  ) {
    const { kernel } = r
    this.#params = decidedParams(s, kernel)
    this.#decisions = s.items.filter((x) => x.kind === 'numbers')
    const formats = s.items.filter((x) => x.kind === 'formats')
    this.#declared = new Map(formats.map((f) => [f.name.name, f]))
    this.#taken = new Set(this.#params.map((p) => p.name))
    for (const { name } of [...formats, ...this.#decisions]) this.#take(name)
    const names = [...this.#params.map((p) => p.name), ...this.#decisions.map((n) => n.name.name)]
    const constants = { names: [], what: 'constants, as numbers of a space are decided later' }
    this.#names = new ChoiceNames(kernel, names, r.format, constants)
    this.#numbers = new SpaceNumbers(this.#decisions, this.#names)
    this.#walk = new StepWalk(
      s,
      r,
      [],
      names.map((name) => ({ name, kind: 'size' })),
    )
  }

  #take(name: Ast.Ident): void {
    const { kernel } = this.r
    refuseMeaning(name, kernel)
    if (this.#taken.has(name.name))
      anotherMeaning(name, `space ${this.s.name.name}`, `rename this ${name.name}`)
    this.#taken.add(name.name)
  }

  /** An unused name `use`, `use2`, … for a decision without a name in the text. */
  #unnamed(word: string): string {
    for (let k = 1; ; k++) {
      const name = k === 1 ? word : `${word}${k}`
      if (this.#taken.has(name)) continue
      this.#taken.add(name)
      return name
    }
  }

  space(): Space {
    const { items, kernel, name } = this.s
    const numbers = this.#decisions.map((n) => this.#numbers.elaborated(n))
    for (const x of items) if (x.kind === 'only') this.#numbers.condition(x.cond)
    const formats = new Map([...this.#declared].map(([own, f]) => [own, this.#format(f)]))
    const steps = items.filter((x) => x.kind !== 'numbers' && x.kind !== 'formats' && x.kind !== 'only')
    const body = this.#steps(steps)
    const { formats: applied, uses, calls, memories, instrs } = this.#walk
    const made = namesAround(this.#walk.made, this.r.kernel, uses)
    return {
      kernel: kernel.name,
      name: name.name,
      params: this.#params,
      formats,
      numbers: numbers.filter((n) => n !== null),
      conditions: this.#numbers.conditions,
      body,
      names: { formats: applied, uses, calls, memories, instrs, made },
      statistics: knownStatistics(this.#names.statistics, [], this.r.kernel).statistics,
      device: this.#names.device,
      text: printSpaceFile(this.s),
      span: name.span,
    }
  }

  #format(f: Ast.FormatDecision): FormatDecision {
    const options = f.options.map((o): Option => {
      return {
        text: printParts(o.parts),
        conditions: this.#numbers.conditionsOf(o.where),
        numbers: this.#numbers.mentionedIn(o.parts),
      }
    })
    this.#refuseTwice(options, f.options, f.name.name)
    return { name: f.name.name, options }
  }

  #refuseTwice(options: readonly Option[], nodes: readonly Ast.Node[], what: string): void {
    options.forEach(({ text }, k) => {
      const first = options.findIndex((o) => o.text === text)
      if (first < k)
        report('check/duplicate', nodes[k]!.span, {
          message: `${text} is listed twice for ${what}`,
          labels: [{ span: nodes[first]!.span, text: 'first here' }],
          hint: `remove a duplicate ${text}`,
        })
    })
  }

  #steps(steps: readonly Ast.SpaceStep[]): readonly SpaceStep[] {
    return steps.flatMap((s): readonly SpaceStep[] => {
      if (s.kind === 'uses') return [this.#uses(s)]
      if (s.kind === 'either') return [this.#either(s)]
      const decided = s.kind === 'as' && !s.parts[1] ? this.#declared.get(s.parts[0]!.format.name) : undefined
      if (s.kind === 'as' && decided) return [this.#applied(s, decided)]
      return writtenOut([s]).map((step): SpaceStep => {
        this.#walk.steps([step], [])
        return { kind: 'step', step, numbers: this.#numbers.mentionedIn(step) }
      })
    })
  }

  /** The step `A as F`, with one step for each option of F. */
  #applied(s: Ast.AsStep, decided: Ast.FormatDecision): SpaceStep {
    const [part] = s.parts
    const given = part?.args[0] ?? part?.where
    if (given)
      report('check/arguments', given.span, {
        message: `${decided.name.name} is decided with its arguments`,
        expected: `${s.buffer.name} as ${decided.name.name}`,
      })
    const steps = decided.options.map((o): Ast.AsStep => ({ ...s, parts: o.parts }))
    this.#walk.steps(steps, [])
    // Numbers that the options mention belong to the options.
    const numbers = this.#numbers.mentionedIn({ ...s, parts: [] })
    return { kind: 'format', format: decided.name.name, steps, numbers }
  }

  #either(s: Ast.Either): SpaceStep {
    const name = this.#unnamed('either')
    const options = s.groups.map((g): StepOption => {
      return {
        text: printGroup(g),
        conditions: this.#numbers.conditionsOf(g.where),
        numbers: new Set(),
        body: this.#steps(g.steps),
      }
    })
    this.#refuseTwice(options, s.groups, 'either')
    return { kind: 'options', name, options }
  }

  #uses(s: Ast.UseAlternatives): SpaceStep {
    const name = this.#unnamed('use')
    const options = s.options.map((o): StepOption => {
      const { where, ...used } = o
      const step: Ast.UseStep = { kind: 'use', ...used }
      const text = printStep(step).slice('use '.length)
      return {
        text,
        conditions: this.#numbers.conditionsOf(where),
        numbers: this.#numbers.mentionedIn(used.args),
        body: this.#used(step),
      }
    })
    this.#refuseTwice(options, s.options, 'use')
    return { kind: 'options', name, options }
  }

  /** A use of a schedule or function, with numbers in place of sizes that the point decides. */
  #plainUse(step: Ast.UseStep, params: readonly Ast.ScheduleParam[]): SpaceStep {
    const others = inOrder(step.args, params).filter((_, k) => params[k]!.kind !== 'size')
    const sizes = step.args.map((a) => (a.value.kind === 'group' || others.includes(a) ? null : a.value))
    const args = sizes.map((e) => e && this.#numbers.integer(e))
    // Arguments may use names that steps cannot use: with the point, they are numbers.
    const walked = step.args.map((a, k) => (sizes[k] ? { ...a, value: integer(1, sizes[k].span) } : a))
    this.#walk.steps([{ ...step, args: walked }], [])
    return { kind: 'use', step, args, numbers: this.#numbers.mentionedIn(step.args) }
  }

  #used(step: Ast.UseStep): StepOption['body'] {
    const { schedules, functions, space: find } = this.r
    const { name, span } = step.schedule
    const decl = step.kernel ? undefined : (schedules?.get(name) ?? functions.get(name))
    if (decl?.kind !== 'choice' || decl.by !== 'search')
      return singleUses(step).map((s) => this.#plainUse(s, decl?.params ?? []))
    if (this.path.includes(decl)) {
      report('check/space-cycle', span, {
        message: `space ${this.s.name.name} uses itself${decl === this.s ? '' : ` through ${name}`}`,
        hint: 'remove this `use`, or another `use` of the cycle',
      })
      return []
    }
    const fits = checkUse(`space ${name}`, step, decl.params)
    const args = inOrder(step.args, decl.params).map((a) =>
      a && a.value.kind !== 'group' ? this.#numbers.integer(a.value) : null,
    )
    const nested = find(decl, this.path)
    if (!nested || !fits) return []
    for (const [text, s] of nested.statistics) this.#names.statistics.set(text, s)
    for (const [text, q] of nested.device) this.#names.device.set(text, q)
    return { space: nested, prefix: `${this.#unnamed(name)}.`, args, span }
  }
}
