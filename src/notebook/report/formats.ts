/** Pictures of tensors as a kernel stores them. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import { chooseFormat } from '../../api/choose-format.ts'
import { SptFormat } from '../../api/format-values.ts'
import type { Kernel } from '../../api/kernel.ts'
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import { drawCoords } from '../../pictures/picture/index.ts'
import { heading, paragraph, wide } from './page.ts'

type Tensors = NonNullable<RunInputs['tensors']>
/** A tensor by its coordinates. */
type Sparse = Parameters<typeof drawCoords>[0]

/** Maximum number of elements of drawn tensors, because drawing converts them again. */
const MOST_STORED = 2 ** 24

/** HTML: a picture of each tensor that is bound by its coordinates, in the format that the steps of the kernel give it. */
export function storedTensors(kernel: Kernel, tensors: Tensors): readonly string[] {
  return Object.entries(tensors).flatMap(([name, tensor]) => {
    if (!isSparse(tensor)) return []
    const stored = tensor.coords[0]?.length ?? 0
    if (stored > MOST_STORED)
      return [heading(name), paragraph(`Not drawn: it has more than ${MOST_STORED} elements.`, 'note')]
    const step = kernel.toJSON().find((s) => s.kind === 'as' && s.buffer === name)
    const svg = orRefused(() => {
      if (step?.kind !== 'as') return drawCoords(tensor, { name: `${name}, as it is declared` })
      const { format, args } = chooseFormat(step.format, step.args, kernel.formats)
      const made = new SptFormat(format, args).withOrder(tensor.shape.length)
      const given = made.inputs.map((g) => [g.name, tensors[g.name]!] as const)
      return made.svg(tensor, Object.fromEntries(given), { name })
    })
    return svg instanceof SptError
      ? [heading(name), paragraph(`Not drawn: ${svg.diagnostics[0]!.message}.`, 'note')]
      : [wide(svg)]
  })
}

const isSparse = (tensor: Tensors[string]): tensor is Sparse => 'kind' in tensor && tensor.kind === 'coords'
