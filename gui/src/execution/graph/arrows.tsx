import { BaseEdge, type EdgeProps, getBezierPath } from "@xyflow/react";
import type { ReactNode } from "react";

/** How far an arrow from a step to itself, or back, reaches beyond the boxes, pixels. */
const OWN_ARROW_PX = 52;
const BACK_ARROW_PX = 44;

/** What an arrow has to know of its boxes. */
export interface ArrowData extends Record<string, unknown> {
  isAcross: boolean;
  /** It leads against the direction of the others. */
  isBack: boolean;
  from: { width: number; height: number };
  to: { width: number; height: number };
  /** Of an arrow back: how far boxes between the two reach beyond its first one, pixels. */
  beyond: number;
}

/** An arrow with its condition near its head, where those of a step's other arrows are farther away than at its middle. */
export function Arrow(props: EdgeProps): ReactNode {
  const data = props.data as ArrowData;
  if (props.source === props.target) return <OwnArrow {...props} />;
  if (data.isBack) return <BackArrow {...props} />;
  const { sourceX, sourceY, sourcePosition, targetX, targetY, targetPosition, markerEnd, label } = props;
  const [path, middleX, middleY] = getBezierPath({
    ...{ sourceX, sourceY, sourcePosition, targetX, targetY, targetPosition },
    curvature: 0.3,
  });
  const isForward = data.isAcross ? targetX > sourceX : targetY > sourceY;
  const near = (from: number, to: number) => from + 0.658 * (to - from);
  return (
    <BaseEdge
      path={path}
      label={label}
      labelX={isForward && !data.isAcross ? near(sourceX, targetX) : middleX}
      labelY={isForward ? near(sourceY, targetY) : middleY}
      {...(markerEnd !== undefined && { markerEnd })}
    />
  );
}

/** An arrow from a step to itself: over its box, or at the right side of it. */
function OwnArrow({ sourceX, sourceY, targetX, targetY, markerEnd, label, data }: EdgeProps): ReactNode {
  const { isAcross, from } = data as ArrowData;
  // A label stands around its middle: this one must not reach back over the box.
  const labelHalf = 3 * String(label ?? "").length;
  if (isAcross) {
    const top = sourceY - from.height / 2;
    const [right, left] = [sourceX - from.width * 0.25, targetX + from.width * 0.25];
    return (
      <BaseEdge
        path={`M ${right} ${top} C ${right + 20} ${top - OWN_ARROW_PX} ${left - 20} ${top - OWN_ARROW_PX} ${left} ${top - 2}`}
        label={label}
        labelX={(right + left) / 2}
        labelY={top - OWN_ARROW_PX * 0.78}
        labelBgPadding={[2, 1]}
        {...(markerEnd !== undefined && { markerEnd })}
      />
    );
  }
  const right = sourceX + from.width / 2;
  const [begin, end] = [sourceY - from.height * 0.25, targetY + from.height * 0.25];
  const out = right + OWN_ARROW_PX;
  return (
    <BaseEdge
      path={`M ${right} ${begin} C ${out} ${begin + 12} ${out} ${end - 12} ${right + 2} ${end}`}
      label={label}
      labelX={right + OWN_ARROW_PX * 0.8 + labelHalf}
      labelY={(begin + end) / 2}
      labelBgPadding={[2, 1]}
      {...(markerEnd !== undefined && { markerEnd })}
    />
  );
}

/** An arrow back to an earlier step: around the boxes, where no other arrow is. */
function BackArrow({ sourceX, sourceY, targetX, targetY, markerEnd, label, data }: EdgeProps): ReactNode {
  const { isAcross, from, to, beyond } = data as ArrowData;
  const more = (markerEnd !== undefined && { markerEnd }) as object;
  if (isAcross) {
    const a = { x: sourceX - from.width / 2, y: sourceY + from.height / 2 };
    const b = { x: targetX + to.width / 2, y: targetY + to.height / 2 };
    const low = Math.max(a.y + beyond, b.y) + BACK_ARROW_PX + 0.3 * beyond + 0.05 * Math.abs(a.x - b.x);
    return (
      <BaseEdge
        path={`M ${a.x} ${a.y} C ${a.x} ${low} ${b.x} ${low} ${b.x} ${b.y + 2}`}
        label={label}
        labelX={(a.x + b.x) / 2}
        labelY={(a.y + b.y) / 8 + 0.75 * low}
        {...more}
      />
    );
  }
  const a = { x: sourceX + from.width / 2, y: sourceY - from.height / 2 };
  const b = { x: targetX + to.width / 2, y: targetY + to.height / 2 };
  const out = Math.max(a.x + beyond, b.x) + BACK_ARROW_PX + 0.3 * beyond + 0.05 * Math.abs(a.y - b.y);
  return (
    <BaseEdge
      path={`M ${a.x} ${a.y} C ${out} ${a.y} ${out} ${b.y} ${b.x + 2} ${b.y}`}
      label={label}
      labelX={(a.x + b.x) / 8 + 0.75 * out}
      labelY={(a.y + b.y) / 2}
      {...more}
    />
  );
}
