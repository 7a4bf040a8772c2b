export async function planPlaybook(): Promise<number> {
  return 0;
}
