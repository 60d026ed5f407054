package interop;

/** The protocol of JoinGroup and SyncGroup, in which a member computes the assignment. */
public final class ClassicGroup {
    public static void main(String[] arguments) {
        Program.main(arguments, program -> GroupMembers.run(program, "classic"));
    }
}
