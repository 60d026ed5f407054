package interop;

/** The protocol of ConsumerGroupHeartbeat, in which the coordinator computes the assignment. */
public final class ConsumerGroup {
    public static void main(String[] arguments) {
        Program.main(arguments, program -> GroupMembers.run(program, "consumer"));
    }
}
