package descriptions;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.DeleteGroupsRequest;
import org.apache.kafka.common.requests.DeleteGroupsResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;
import org.apache.kafka.common.requests.StreamsGroupTopologyDescriptionUpdateRequest;
import org.apache.kafka.common.requests.StreamsGroupTopologyDescriptionUpdateResponse;

/**
 * Says to a broker what it is told on standard input, one command a line, in the library's own request classes, and
 * prints one line for each answer. HOST PORT are its arguments.
 *
 * <pre>
 * join VERSION GROUP MEMBER TOPIC TOPOLOGY_EPOCH     beat VERSION GROUP MEMBER MEMBER_EPOCH
 * push GROUP MEMBER TOPOLOGY_EPOCH [odd-node|odd-store]
 * describe GROUP        delete GROUP... (by the admin client)        delete-now GROUP... (by a request alone)
 * member GROUP TOPIC    (a consumer of the library joins and polls)
 * </pre>
 */
public final class Talk {
    private final String host;
    private final int port;
    private final Admin admin;
    private int correlationId;

    private Talk(String host, int port) {
        this.host = host;
        this.port = port;
        admin = Admin.create(Map.of("bootstrap.servers", host + ":" + port));
    }

    public static void main(String[] arguments) throws Exception {
        var talk = new Talk(arguments[0], Integer.parseInt(arguments[1]));
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            say(talk.obey(line.split(" ")));
        }
        Runtime.getRuntime().halt(0);
    }

    static synchronized void say(String text) {
        System.out.println(text.replace('\n', ' '));
        System.out.flush();
    }

    private String obey(String[] words) throws Exception {
        return switch (words[0]) {
            case "join" -> heartbeat(Short.parseShort(words[1]), joining(words));
            case "beat" -> heartbeat(Short.parseShort(words[1]), beating(words));
            case "push" -> push(words);
            case "describe" -> describe(words[1]);
            case "delete" -> delete(Arrays.asList(words).subList(1, words.length));
            case "delete-now" -> deleteNow(Arrays.asList(words).subList(1, words.length));
            case "member" -> Membership.start(host + ":" + port, words[1], words[2]);
            default -> "?";
        };
    }

    private static StreamsGroupHeartbeatRequestData joining(String[] words) {
        var subtopology = new StreamsGroupHeartbeatRequestData.Subtopology()
            .setSubtopologyId("0")
            .setSourceTopics(List.of(words[4]));
        return new StreamsGroupHeartbeatRequestData()
            .setGroupId(words[2])
            .setMemberId(words[3])
            .setMemberEpoch(0)
            .setEndpointInformationEpoch(-1)
            .setRebalanceTimeoutMs(60_000)
            .setProcessId(words[3])
            .setActiveTasks(List.of())
            .setStandbyTasks(List.of())
            .setWarmupTasks(List.of())
            .setTopology(new StreamsGroupHeartbeatRequestData.Topology()
                .setEpoch(Integer.parseInt(words[5]))
                .setSubtopologies(List.of(subtopology)));
    }

    private static StreamsGroupHeartbeatRequestData beating(String[] words) {
        return new StreamsGroupHeartbeatRequestData()
            .setGroupId(words[2])
            .setMemberId(words[3])
            .setMemberEpoch(Integer.parseInt(words[4]));
    }

    private String heartbeat(short version, StreamsGroupHeartbeatRequestData data) throws Exception {
        var request = new StreamsGroupHeartbeatRequest.Builder(data).build(version);
        var answer = ((StreamsGroupHeartbeatResponse) send(request)).data();
        return Errors.forCode(answer.errorCode()) + " epoch=" + answer.memberEpoch()
            + " asked=" + answer.topologyDescriptionRequired();
    }

    private String push(String[] words) throws Exception {
        var data = new StreamsGroupTopologyDescriptionUpdateRequestData()
            .setGroupId(words[1])
            .setMemberId(words[2])
            .setTopologyEpoch(Integer.parseInt(words[3]))
            .setTopologyDescription(Descriptions.named(words.length > 4 ? words[4] : "whole"));
        var request = new StreamsGroupTopologyDescriptionUpdateRequest.Builder(data).build((short) 0);
        var answer = ((StreamsGroupTopologyDescriptionUpdateResponse) send(request)).data();
        return Errors.forCode(answer.errorCode()) + " " + answer.errorMessage();
    }

    private AbstractResponse send(AbstractRequest request) throws Exception {
        var header = new RequestHeader(ApiKeys.forId(request.apiKey().id), request.version(), "talk", ++correlationId);
        ByteBuffer frame = request.serializeWithHeader(header);
        try (var socket = new Socket(host, port)) {
            var out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(frame.remaining());
            out.write(frame.array(), frame.arrayOffset() + frame.position(), frame.remaining());
            out.flush();
            var in = new DataInputStream(socket.getInputStream());
            return AbstractResponse.parseResponse(ByteBuffer.wrap(in.readNBytes(in.readInt())), header);
        }
    }

    private String describe(String groupId) throws Exception {
        var options = new DescribeStreamsGroupsOptions().includeTopologyDescription(true);
        try {
            var found = admin.describeStreamsGroups(List.of(groupId), options).describedGroups().get(groupId).get();
            return found.topologyDescriptionStatus() + " " + found.topologyDescription().map(Shown::text).orElse("-")
                + " assignor=" + found.assignorName().orElse("-");
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName() + " " + error.getCause().getMessage();
        }
    }

    private String deleteNow(List<String> groupIds) throws Exception {
        var data = new DeleteGroupsRequestData().setGroupsNames(groupIds);
        var answer = ((DeleteGroupsResponse) send(new DeleteGroupsRequest.Builder(data).build((short) 3))).data();
        return answer.results().stream()
            .map(each -> each.groupId() + "=" + Errors.forCode(each.errorCode()) + ": " + each.errorMessage())
            .collect(Collectors.joining("; "));
    }

    private String delete(List<String> groupIds) throws Exception {
        var results = admin.deleteStreamsGroups(groupIds).deletedGroups();
        var said = new StringBuilder();
        for (String groupId : groupIds) {
            said.append(groupId).append('=');
            try {
                results.get(groupId).get();
                said.append("deleted; ");
            } catch (ExecutionException error) {
                said.append(error.getCause().getClass().getSimpleName()).append(": ");
                said.append(error.getCause().getMessage()).append("; ");
            }
        }
        return said.toString();
    }
}
