/** Conversion of a resident tensor to a resident tensor in another format. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { provenance } from '../../../formats/proof/provenance.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import type { Device } from '../../../runtime/device.ts'
import { convert } from '../../convert.ts'
import type { FormatOperands } from '../../format-operands.ts'
import { setTrees } from '../host/set-trees.ts'
import { deviceEngine } from './engine.ts'
import type { Queue } from './queue/command-queue.ts'
import { queueOf, ResidentParts, type ResidentTensor } from './resident-tensors.ts'

/** A conversion for repeated use: its kernels are compiled in the first run. */
export interface ConversionPlan {
  /** Converts a tensor. @throws SptError as `convert` */
  run(tensor: ResidentTensor, given: FormatOperands): Promise<ResidentParts>
}

/** `fill`: the value of positions without an entry. */
export function conversionPlan(device: Device, to: Instance, fill = 0): ConversionPlan {
  const proved = provenance(to).parts.map((p) => ({
    inverse: p.inverse !== 'checked',
    range: p.range !== 'checked',
  }))
  const queue = queueOf(device)
  const engine = deviceEngine(queue)
  return {
    async run(tensor, given) {
      checkQueue(tensor, queue)
      const { shape, dtype } = tensor
      const options = { given, fill, proved, sets: setTrees(given, to, shape) }
      const parts = await queue.transaction(convert(engine, tensor, to, options))
      return new ResidentParts({ queue, instance: to, shape, dtype, fill, parts, given })
    },
  }
}

function checkQueue(tensor: ResidentTensor, queue: Queue): void {
  if (tensor.queue !== queue)
    fail({
      code: 'device/foreign-buffer',
      message: 'the tensor lives on another device',
      expected: `a tensor on ${queue.device.name}`,
      hint: 'download there and upload here',
    })
}
