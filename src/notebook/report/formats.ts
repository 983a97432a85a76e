/** Pictures of the tensors in the formats of a kernel. */
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { SptFormat } from '../../api/inputs/format-values.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { chooseFormat } from '../../api/programs/format-lookup.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { drawCoords } from '../../pictures/picture/index.ts'
import { heading, paragraph, scrollable } from './page.ts'

type Tensors = NonNullable<RunInputs['tensors']>
/** A tensor that is bound by its coordinates. */
type CoordsTensor = Parameters<typeof drawCoords>[0]

/** Maximum number of elements of drawn tensors: drawing converts them again. */
const MAX_STORED = 2 ** 24

/** HTML: a picture of each tensor that is bound by its coordinates, in the format that the steps of the kernel choose. */
export function drawStoredTensors(kernel: Kernel, tensors: Tensors): readonly string[] {
  return Object.entries(tensors).flatMap(([name, tensor]) => {
    if (!isCoords(tensor)) return []
    const count = tensor.coords[0]?.length ?? 0
    if (count > MAX_STORED)
      return [heading(name), paragraph(`Not drawn: it has more than ${MAX_STORED} elements.`, 'note')]
    const step = kernel.toJSON().find((s) => s.kind === 'as' && s.buffer === name)
    const svg = resultOrError(() => {
      if (step?.kind !== 'as') return drawCoords(tensor, { name: `${name}, as it is declared` })
      const { format, args } = chooseFormat(step.format, step.args, kernel.formats)
      const sptFormat = new SptFormat(format, args).withOrder(tensor.shape.length)
      const operands = sptFormat.inputs.map((g) => [g.name, tensors[g.name]!] as const)
      return sptFormat.svg(tensor, Object.fromEntries(operands), { name })
    })
    return svg instanceof SptError
      ? [heading(name), paragraph(`Not drawn: ${svg.diagnostics[0]!.message}.`, 'note')]
      : [scrollable(svg)]
  })
}

const isCoords = (tensor: Tensors[string]): tensor is CoordsTensor =>
  'kind' in tensor && tensor.kind === 'coords'
