/** Spaces of schedules: what they decide, under which conditions, and the steps that come of it. */
import { SptError } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import { printExpr, printGroup, printParts, printStep } from '../ast/print.ts'
import type { Expr } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { ChoiceNames, decidedParams, refuseMeaning } from './choice-names.ts'
import { elaborateExpr, settled, truth } from './expressions.ts'
import { checkArguments } from './format-uses.ts'
import type { Resolve } from './resolve.ts'
import { wrongArgument } from './schedule-params.ts'
import { StepWalk } from './schedules.ts'
import { isEmpty } from './space-emptiness.ts'
import { expressionsIn, namesIn, refuseUnused } from './space-mentions.ts'
import type {
  FormatDecision,
  NumberDecision,
  NumberList,
  Option,
  Space,
  SpaceCondition,
  SpaceStep,
  StepOption,
} from './space-types.ts'
import { numbersOf } from './space-values.ts'

/** @param path the spaces whose text is being gone through */
export function elaborateSpace(s: Ast.Space, r: Resolve, path: readonly Ast.Space[]): Space | null {
  const { report, kernel } = r
  if (!kernel) return null
  const before = report.count
  const made = new Elaboration(s, { ...r, kernel }, [...path, s]).space()
  if (report.count > before) return null
  refuseUnused(made, s, r)
  const params = new Map(made.params.map((p) => [p.name, undefined]))
  if (report.count === before && isEmpty({ space: made, params, known: () => undefined }))
    report.error({
      code: 'check/empty-space',
      message: `no point of ${s.kernel.name}.${s.name.name} meets its conditions`,
      span: s.name.span,
      labels: made.conditions.map(({ span }) => ({ span, text: 'must hold' })),
      hint: 'leave out a condition, or give more values',
    })
  return report.count > before ? null : made
}

class Elaboration {
  readonly #s: Ast.Space
  readonly #r: Resolve & { readonly kernel: Kernel1 }
  readonly #path: readonly Ast.Space[]
  readonly #params: Space['params']
  readonly #numbers: readonly Ast.NumberDecision[]
  readonly #declared: ReadonlyMap<string, Ast.FormatDecision>
  readonly #names: ChoiceNames
  readonly #walk: StepWalk
  readonly #conditions: SpaceCondition[] = []
  /** Names of decisions, and of what nested spaces begin with. */
  readonly #taken: Set<string>

  constructor(s: Ast.Space, r: Resolve & { readonly kernel: Kernel1 }, path: readonly Ast.Space[]) {
    const { kernel, report } = r
    this.#s = s
    this.#r = r
    this.#path = path
    this.#params = decidedParams(s, kernel, report)
    this.#numbers = s.items.filter((x) => x.kind === 'numbers')
    const formats = s.items.filter((x) => x.kind === 'formats')
    this.#declared = new Map(formats.map((f) => [f.name.name, f]))
    this.#taken = new Set(this.#params.map((p) => p.name))
    for (const { name } of [...formats, ...this.#numbers]) this.#take(name)
    const names = [...this.#params.map((p) => p.name), ...this.#numbers.map((n) => n.name.name)]
    this.#names = new ChoiceNames(kernel, names, report)
    this.#walk = new StepWalk(s, r, [], new Set(names))
  }

  #take(name: Ast.Ident): void {
    const { report, kernel } = this.#r
    refuseMeaning(name, kernel, report)
    if (this.#taken.has(name.name))
      report.error({
        code: 'check/duplicate',
        message: `${name.name} has another meaning in space ${this.#s.name.name}`,
        span: name.span,
        hint: 'rename one of them',
      })
    this.#taken.add(name.name)
  }

  /** `use`, `use2`, …: names of decisions that the text gives none. */
  #unnamed(word: string): string {
    for (let k = 1; ; k++) {
      const name = k === 1 ? word : `${word}${k}`
      if (this.#taken.has(name)) continue
      this.#taken.add(name)
      return name
    }
  }

  space(): Space {
    const { items, kernel, name } = this.#s
    const numbers = this.#numbers.map((n) => this.#number(n))
    for (const x of items) if (x.kind === 'only') this.#condition(x.cond)
    const formats = new Map([...this.#declared].map(([own, f]) => [own, this.#format(f)]))
    const steps = items.filter((x) => x.kind !== 'numbers' && x.kind !== 'formats' && x.kind !== 'only')
    const body = this.#steps(steps)
    const { formats: applied, uses, memories, instrs } = this.#walk
    return {
      kernel: kernel.name,
      name: name.name,
      params: this.#params,
      formats,
      numbers: numbers.filter((n) => n !== null),
      conditions: this.#conditions,
      body,
      names: { formats: applied, uses, memories, instrs },
      statistics: this.#names.statistics,
      device: this.#names.device,
      span: name.span,
    }
  }

  // Numbers and conditions -----------------------------------------------------------------------------------

  #number(n: Ast.NumberDecision): NumberDecision | null {
    const { report } = this.#r
    const name = n.name.name
    const values = this.#values(n.values)
    if (n.where) this.#condition(n.where)
    if (!values) return null
    const all = this.#numbers.map((m) => m.name.name)
    const mentioned = all.filter((m) => expressionsIn(values).some((e) => freeVars(e).has(m)))
    const late = mentioned.find((m) => all.indexOf(m) >= all.indexOf(name))
    if (late !== undefined)
      report.error({
        code: 'check/decision-order',
        message: `the values of ${name} depend on ${late === name ? 'itself' : `${late}, which is decided after it`}`,
        span: n.span,
        hint: late === name ? 'say it as a condition: `only where (…)`' : `move ${late} before it`,
      })
    const isFixed = values.kind === 'list' && values.entries.length === 1
    const made = { name, values, isFixed, numbers: new Set(mentioned), span: n.span }
    try {
      const listed = numbersOf(made, () => undefined)
      if (listed?.length === 0)
        report.error({
          code: 'check/empty-space',
          message: `${name} has no values`,
          span: n.span,
          hint: 'leave it out, or give it some',
        })
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      for (const d of e.diagnostics) report.error(d)
    }
    return made
  }

  #values(v: Ast.NumberList): NumberList | null {
    const integer = (e: Ast.Expr): Expr | null => this.#integer(e)
    if (v.kind === 'range') {
      const [from, to, by] = [integer(v.from), integer(v.to), v.by && integer(v.by)]
      return from && to && (by || !v.by) ? { kind: 'range', from, to, by } : null
    }
    const entries = v.widths.map((w) => {
      const [value, power] = [integer(w.value), w.power && integer(w.power)]
      return value && (power || !w.power) ? { value, power, doubling: w.doubling } : null
    })
    const whole = entries.filter((e) => e !== null)
    return whole.length === entries.length ? { kind: 'list', entries: whole } : null
  }

  #integer(e: Ast.Expr): Expr | null {
    const x = settled(e, this.#names, this.#r.report)
    if (x && x.dtype !== 'i32') return this.#r.report.error(wrongArgument('an integer', x.dtype, e.span))
    return x
  }

  /** Each conjunct on its own: those that are known early leave out values early. */
  #conditionsOf(e: Ast.Expr | null): readonly SpaceCondition[] {
    if (!e) return []
    const t = elaborateExpr(e, this.#names, this.#r.report)
    const expr = t && truth(t, e.span, this.#r.report)
    if (!expr) return []
    const free = freeVars(expr)
    const numbers = this.#numbers.map((n) => n.name.name).filter((n) => free.has(n))
    return [{ expr, text: printExpr(e), numbers, span: e.span }]
  }

  #condition(e: Ast.Expr): void {
    this.#conditions.push(...this.#conditionsOf(e))
  }

  /** The numbers of the space that expressions somewhere in a node name. */
  #mentionedIn(node: unknown): ReadonlySet<string> {
    const names = new Set(this.#numbers.map((n) => n.name.name))
    return new Set(namesIn(node).filter((n) => names.has(n)))
  }

  // Options --------------------------------------------------------------------------------------------------

  #format(f: Ast.FormatDecision): FormatDecision {
    const options = f.options.map((o): Option => {
      return {
        text: printParts(o.parts),
        conditions: this.#conditionsOf(o.where),
        numbers: this.#mentionedIn(o.parts),
      }
    })
    this.#refuseTwice(options, f.options, f.name.name)
    return { name: f.name.name, options }
  }

  #refuseTwice(options: readonly Option[], nodes: readonly Ast.Node[], what: string): void {
    options.forEach(({ text }, k) => {
      const first = options.findIndex((o) => o.text === text)
      if (first < k)
        this.#r.report.error({
          code: 'check/duplicate',
          message: `${text} is twice among what ${what} can be`,
          span: nodes[k]!.span,
          labels: [{ span: nodes[first]!.span, text: 'first here' }],
          hint: 'leave one of them out',
        })
    })
  }

  #steps(steps: readonly Ast.SpaceStep[]): readonly SpaceStep[] {
    return steps.flatMap((s): readonly SpaceStep[] => {
      if (s.kind === 'uses') return [this.#uses(s)]
      if (s.kind === 'either') return [this.#either(s)]
      const decided = s.kind === 'as' && !s.parts[1] ? this.#declared.get(s.parts[0]!.format.name) : undefined
      if (s.kind === 'as' && decided) return [this.#applied(s, decided)]
      this.#walk.steps([s], [])
      return [{ kind: 'step', step: s, numbers: this.#mentionedIn(s) }]
    })
  }

  /** `A as F` */
  #applied(s: Ast.AsStep, decided: Ast.FormatDecision): SpaceStep {
    const [part] = s.parts
    const given = part?.args[0] ?? part?.where
    if (given)
      this.#r.report.error({
        code: 'check/arguments',
        message: `${decided.name.name} is decided with its arguments`,
        span: given.span,
        expected: `${s.buffer.name} as ${decided.name.name}`,
      })
    const steps = decided.options.map((o): Ast.AsStep => ({ ...s, parts: o.parts }))
    this.#walk.steps(steps, [])
    return { kind: 'format', format: decided.name.name, steps }
  }

  #either(s: Ast.Either): SpaceStep {
    const name = this.#unnamed('either')
    const options = s.groups.map((g): StepOption => {
      return {
        text: printGroup(g),
        conditions: this.#conditionsOf(g.where),
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
      const { schedule, args, span } = o
      const step: Ast.UseStep = { kind: 'use', schedule, args, span }
      const text = printStep(step).slice('use '.length)
      return {
        text,
        conditions: this.#conditionsOf(o.where),
        numbers: this.#mentionedIn(args),
        body: this.#used(step),
      }
    })
    this.#refuseTwice(options, s.options, 'use')
    return { kind: 'options', name, options }
  }

  #used(step: Ast.UseStep): StepOption['body'] {
    const { scope, report, space: find } = this.#r
    const { name, span } = step.schedule
    const decl = scope.schedules.get(this.#s.kernel.name)?.get(name)
    const args = step.args.map((e) => this.#integer(e))
    if (decl?.kind !== 'space') {
      // Its arguments may ask what steps cannot: they are numbers once the point is known.
      const number = (e: Ast.Expr): Ast.Expr => ({ kind: 'number', value: 1, float: false, span: e.span })
      this.#walk.steps([{ ...step, args: step.args.map(number) }], [])
      const known = args.filter((a) => a !== null)
      return [{ kind: 'use', step, args: known, numbers: this.#mentionedIn(step.args) }]
    }
    if (this.#path.includes(decl)) {
      report.error({
        code: 'check/space-cycle',
        message: `space ${this.#s.name.name} uses itself${decl === this.#s ? '' : ` through ${name}`}`,
        span,
        hint: 'leave out this `use`, or one on the way around',
      })
      return []
    }
    const fits = checkArguments(`space ${name}`, args.length, decl.params, step.span, report)
    const nested = find(decl, this.#path)
    if (!nested || !fits) return []
    for (const [asked, s] of nested.statistics) this.#names.statistics.set(asked, s)
    for (const [asked, q] of nested.device) this.#names.device.set(asked, q)
    return { space: nested, prefix: `${this.#unnamed(name)}.`, args, span }
  }
}
