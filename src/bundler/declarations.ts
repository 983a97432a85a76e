/** TypeScript declarations of the plans that a project imports, with a declaration map to the programs. */
import { encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec'
import { position, SourceText } from '../ast/diagnostics/source-frame.ts'
import { type Source, type Span, sourceOf } from '../ast/diagnostics/span.ts'
import { locate } from '../io/package/package.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { arrayClass } from '../ir/values/arrays.ts'
import { readKernel } from '../plan/binding-codecs.ts'
import { expr } from '../plan/expressions.ts'
import { isFamily } from '../plan/family-codec.ts'
import { valueIn } from '../plan/interpret.ts'
import type { Plan, PlanBuffer } from '../plan/schema.ts'
import { callerTensors } from '../run/bind/bind-plan.ts'
import { isInput, isOutput, visibleBuffers } from '../web/inputs.ts'
import { solve } from '../web/sizes.ts'
import type { CompiledPlan, PlanRequest } from './plan-request.ts'

/** An import of a plan in a project. */
export interface PlanImport extends CompiledPlan {
  /** The specifier of the import as `declare module` can name it: with `*` in place of a start such as `..`. */
  readonly pattern: string
  readonly request: PlanRequest
}

interface Member {
  readonly name: string
  readonly type: string
  readonly about?: string
  readonly optional?: boolean
}

/** A declaration file for ambient modules, and its declaration map, in which `relative` makes paths of programs relative to the file. */
export function planDeclarations(
  imports: readonly PlanImport[],
  file: string,
  relative: (path: string) => string,
): { readonly text: string; readonly map: string } {
  const sources: string[] = []
  const mappings: SourceMapSegment[][] = []
  const lines = ['// Written by `spt types`. Repeat the command after a change of an import or a program.']
  for (const { pattern, request, plan: made, program } of imports) {
    const plans = isFamily(made) ? made.plans : [made]
    const [plan] = plans as [Plan]
    const { buffers, params, axes } = program.kernel(plan.kernel).compilation.kernel
    const spans = new Map([...axes, ...params, ...buffers].map((x) => [x.name, x.span]))
    const add = (line: string, name?: string, span?: Span): void => {
      lines.push(line)
      const source = span && sourceOf(span, program.sources)
      if (name === undefined || !source) return
      const path = relative(locate(source.name))
      if (!sources.includes(path)) sources.push(path)
      const { line: declared, column } = placeOf(name, span, source)
      while (mappings.length < lines.length) mappings.push([])
      mappings[lines.length - 1]!.push([line.indexOf(name), sources.indexOf(path), declared, column])
    }
    const block = (name: string, members: readonly Member[]): void => {
      add(`  export interface ${name} {`)
      for (const { name: member, type, about, optional } of members) {
        if (about !== undefined) add(`    /** ${about} */`)
        // Index arrays are named by their axis: j_indptr.
        const declared = spans.get(member) ?? spans.get(member.replace(/_[a-z]+$/, ''))
        add(`    readonly ${member}${optional ? '?' : ''}: ${type}`, member, declared)
      }
      add('  }')
    }
    const { inputs, outputs, arrays } = request.formats
      ? tensorsOf(plan)
      : arraysOf(plans, isFamily(made) ? Object.keys(made.choose.statistics) : [])
    const [runtime, instance] = request.formats
      ? ['sparsetile/runtime/formats', 'TensorInstance<Inputs, Outputs>']
      : ['sparsetile/runtime', 'Instance<Inputs, Outputs, Arrays>']
    const kind = isFamily(made) ? 'PlanFamily' : 'Plan'
    const schedule = isFamily(made) ? made.choose.schedule : plan.schedule
    add(`declare module ${JSON.stringify(pattern)} {`)
    add(`  import type { ${request.formats ? 'Tensor, TensorInstance' : 'Instance'} } from '${runtime}'`)
    add(`  import type { ${kind} } from 'sparsetile/runtime'`)
    block('Inputs', inputs)
    if (arrays) block('Arrays', arrays)
    block('Outputs', outputs)
    add(`  export const plan: ${kind}`)
    add(
      `  export const build: (device?: ${plan.device === 'cpu' ? 'undefined' : 'GPUDevice'}) => Promise<${instance}>`,
    )
    add(`  /** The kernel ${plan.kernel}${schedule === null ? '' : `, with the schedule ${schedule}`}. */`)
    add(
      `  const product: { readonly plan: ${kind}; readonly build: typeof build }`,
      'product',
      spans.get(plan.kernel),
    )
    add('  export default product')
    add('}')
  }
  lines.push(`//# sourceMappingURL=${file}.map`, '')
  return {
    text: lines.join('\n'),
    map: `${JSON.stringify({ version: 3, file, names: [], sources, mappings: encode(mappings) })}\n`,
  }
}

/** Line and column, from 0, of a name in its declaration. */
function placeOf(
  name: string,
  span: Span,
  { text }: Source,
): { readonly line: number; readonly column: number } {
  const at = text
    .slice(span.start, span.end)
    .search(new RegExp(`\\b${name.replace(/_[a-z]+$/, '(_[a-z]+)?')}\\b`))
  const { line, column } = position(new SourceText(text), span.start + Math.max(at, 0))
  return { line: line - 1, column: column - 1 }
}

interface Members {
  readonly inputs: readonly Member[]
  readonly outputs: readonly Member[]
  readonly arrays?: readonly Member[]
}

/**
 * Members for ready arrays, by buffers. Several plans are those of a family: inputs then contain `statistics`, and arrays that only some
 * of the plans have are optional.
 */
function arraysOf(plans: readonly Plan[], statistics: readonly string[]): Members {
  const isOnGpu = plans[0]!.device === 'webgpu'
  const all = plans.flatMap((plan) => visibleBuffers(plan))
  const buffers = [...new Map(all.map((b) => [b.name, b])).values()]
  const isInAll = ({ name }: PlanBuffer): boolean =>
    plans.every((plan) => visibleBuffers(plan).some((b) => b.name === name))
  const array = (b: PlanBuffer): Member => ({
    name: b.name,
    type: arrayClass(b.dtype).name,
    about: `${b.dtype}, length ${printExpr(expr.read(b.length, b.name))}`,
  })
  const given = (b: PlanBuffer): Member => {
    const { type, ...rest } = array(b)
    return { ...rest, type: isOnGpu ? `${type} | GPUBuffer` : type, optional: !(isInput(b) && isInAll(b)) }
  }
  const sizes = new Set(plans.flatMap((p) => p.sizes.flatMap((s) => (s.from === 'packed' ? [] : [s.name]))))
  const follows = (name: string): boolean => plans.every((plan) => followsFromLengths(plan, name))
  return {
    inputs: [
      ...buffers.filter((b) => isInput(b) || (isOutput(b) && isOnGpu)).map(given),
      ...[...sizes].map((name) => ({ name, type: 'number', optional: follows(name) })),
      ...statistics.map((name) => ({ name: `'${name}'`, type: 'number' })),
      ...plans[0]!.scalars.map(scalar),
    ],
    arrays: buffers.map(array),
    outputs: buffers.filter(isOutput).map(array),
  }
}

/** Members for tensors in coordinates, by the tensors of the kernel. */
function tensorsOf(plan: Plan): Members {
  const tensors = callerTensors(readKernel(plan))
  const tensor = ({ name }: { readonly name: string }): Member => ({ name, type: 'Tensor' })
  return {
    inputs: [
      ...tensors.filter((t) => t.first.role !== 'out').map(tensor),
      ...plan.sizes
        .filter((s) => s.from === 'caller')
        .map(({ name }) => ({ name, type: 'number', optional: true })),
      ...plan.scalars.map(scalar),
    ],
    outputs: tensors.filter((t) => t.first.role !== 'in').map(tensor),
  }
}

const scalar = ({ name, dtype }: Plan['scalars'][number]): Member => ({
  name,
  type: dtype === 'bool' ? 'boolean | number' : 'number',
  about: dtype,
})

/** True if the lengths of arrays determine a size, once all other sizes are known. */
function followsFromLengths(plan: Plan, name: string): boolean {
  const sizes = new Map(plan.sizes.map((s) => [s.name, 7]))
  return visibleBuffers(plan)
    .filter(isInput)
    .some(({ length }) => {
      const others = new Map(sizes)
      others.delete(name)
      const n = valueIn(length, sizes)
      if (n !== undefined) solve(length, n, others)
      return others.get(name) === 7
    })
}
