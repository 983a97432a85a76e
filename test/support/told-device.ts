import { type Device, devices } from '../../src/node.ts'

/**
 * The cpu device, which tells of each run that is timed before it begins.
 * @param ms what each takes as far as it says: how busy the machine is decides nothing then, and nothing has to run
 */
export async function toldDevice(before: () => void | Promise<void>, ms?: () => number): Promise<Device> {
  const device = await devices.cpu()
  const [time, graph] = [device.time.bind(device), device.graph.bind(device)]
  const said = (repeats: number, timed: () => Promise<number[]>) =>
    ms ? Array.from({ length: repeats }, ms) : timed()
  device.time = async (commands, repeats, ...more) => {
    await before()
    return said(repeats, () => time(commands, repeats, ...more))
  }
  device.graph = async (...args) => {
    const made = await graph(...args)
    const own = made.time.bind(made)
    made.time = async (repeats, ...more) => {
      await before()
      return said(repeats, () => own(repeats, ...more))
    }
    return made
  }
  return device
}
